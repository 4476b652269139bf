"""A Kafka broker with a KIP-848 group coordinator, for tests.

It starts in milliseconds and stores nothing unless it has a data folder.

::

    async with MockBroker(topics={"orders": 3}) as broker:
        ...                                   # any Kafka client, at broker.bootstrap
        broker.produce("orders", b"one", b"two")
        print(broker.snapshot("my-group"))

For several brokers use ``MockCluster``.

From a shell: ``kip848 mock --topic orders:3`` or ``python -m mock_coordinator --topic orders:3``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mock_coordinator.batches import NewRecord, StoredRecord
    from mock_coordinator.core.faults import Fault, Match
    from mock_coordinator.core.ownership import OwnershipViolation
    from mock_coordinator.driver.clock import Clock, VirtualClock, wall_clock
    from mock_coordinator.driver.request_log import LoggedRequest
    from mock_coordinator.inprocess import InProcessConnection
    from mock_coordinator.mock_broker import MockBroker
    from mock_coordinator.mock_cluster import MockCluster
    from mock_coordinator.options import BrokerOptions

__all__ = [
    "BrokerOptions",
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

# Imported when first used: pytest loads the plugin of this package at every start.
_LAZY: Final = {
    "BrokerOptions": "mock_coordinator.options",
    "Clock": "mock_coordinator.driver.clock",
    "Fault": "mock_coordinator.core.faults",
    "InProcessConnection": "mock_coordinator.inprocess",
    "LoggedRequest": "mock_coordinator.driver.request_log",
    "Match": "mock_coordinator.core.faults",
    "MockBroker": "mock_coordinator.mock_broker",
    "MockCluster": "mock_coordinator.mock_cluster",
    "NewRecord": "mock_coordinator.batches",
    "OwnershipViolation": "mock_coordinator.core.ownership",
    "StoredRecord": "mock_coordinator.batches",
    "VirtualClock": "mock_coordinator.driver.clock",
    "wall_clock": "mock_coordinator.driver.clock",
}


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
