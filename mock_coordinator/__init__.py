"""A Kafka broker with a KIP-848 group coordinator, for tests: starts in milliseconds, keeps
nothing.

::

    async with MockBroker(topics={"orders": 3}) as broker:
        ...                                   # any Kafka client, at broker.bootstrap
        broker.produce("orders", b"one", b"two")
        print(broker.snapshot("my-group"))

Several brokers are a ``MockCluster``.

From a shell: ``kip848 mock --topic orders:3`` or ``python -m mock_coordinator --topic orders:3``.
"""

from __future__ import annotations

from mock_coordinator.batches import NewRecord, StoredRecord
from mock_coordinator.clock import Clock, VirtualClock, wall_clock
from mock_coordinator.core.faults import Fault, Match
from mock_coordinator.core.ownership import OwnershipViolation
from mock_coordinator.driver import LoggedRequest
from mock_coordinator.inprocess import InProcessConnection
from mock_coordinator.mock_broker import MockBroker
from mock_coordinator.mock_cluster import MockCluster

__all__ = [
    "Clock",
    "Fault",
    "InProcessConnection",
    "LoggedRequest",
    "Match",
    "MockBroker",
    "MockCluster",
    "NewRecord",
    "OwnershipViolation",
    "StoredRecord",
    "VirtualClock",
    "wall_clock",
]
