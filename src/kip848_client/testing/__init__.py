"""The bundled broker under a name of this package: what ``mock_coordinator`` has, and no more.

    from kip848_client.testing import MockBroker

Its pytest plugin is the one of ``mock_coordinator``, and pytest loads it once.
"""

from __future__ import annotations

from mock_coordinator import (
    BrokerOptions,
    Clock,
    Fault,
    InProcessConnection,
    LoggedRequest,
    Match,
    MockBroker,
    MockCluster,
    NewRecord,
    OwnershipViolation,
    StoredRecord,
    VirtualClock,
    wall_clock,
)

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
