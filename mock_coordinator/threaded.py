"""A broker in a thread of its own, for tests that are not async and clients that block.

::

    with BrokerThread({"orders": 3}) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap})
        ...
        broker.wait_for(lambda each: len(each.records("orders")) == 10)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from mock_coordinator.batches import NewRecord, StoredRecord
from mock_coordinator.core.faults import Fault
from mock_coordinator.core.groups import GroupSnapshot
from mock_coordinator.driver import LoggedRequest
from mock_coordinator.mock_broker import MockBroker

__all__ = ["BrokerThread"]

T = TypeVar("T")


class BrokerThread:
    """``MockBroker``, run by another thread; takes what that takes.

    Use it as a context manager. Everything here may be called from any thread, and blocks until
    the broker has done it. What is not here is reached with ``call``. Leaving the block raises
    ``OwnershipViolation`` as leaving ``MockBroker`` does.
    """

    def __init__(self, topics: Mapping[str, int] | None = None, **options: Any) -> None:
        self._make = lambda: MockBroker(topics, **options)
        self._portal: BlockingPortal | None = None
        self._broker: MockBroker | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            portal = stack.enter_context(start_blocking_portal("asyncio"))
            broker = portal.call(self._make)
            stack.enter_context(portal.wrap_async_context_manager(broker))
            self._portal, self._broker = portal, broker
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(exc_type, exc, traceback)

    def call(self, function: Callable[[MockBroker], T]) -> T:
        """What a function of the broker returns, called where the broker lives."""
        if self._portal is None or self._broker is None:
            raise RuntimeError("the broker runs inside of its with block")
        broker = self._broker
        return self._portal.call(lambda: function(broker))

    @property
    def bootstrap(self) -> str:
        """``host:port``, for ``bootstrap.servers``."""
        return self.call(lambda broker: broker.bootstrap)

    def inject(self, *faults: Fault) -> None:
        """Let these go wrong from now on (see ``mock_coordinator.core.faults``)."""
        self.call(lambda broker: broker.faults.add(*faults))

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic. Raises ``BrokerError``."""
        self.call(lambda broker: broker.create_topic(name, partitions))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises ``BrokerError``."""
        self.call(lambda broker: broker.delete_topic(name))

    def produce(
        self,
        topic: str,
        *values: bytes | NewRecord | None,
        partition: int = 0,
        key: bytes | None = None,
    ) -> int:
        """Append records and return the first one's offset. Raises ``BrokerError``."""
        return self.call(
            lambda broker: broker.produce(topic, *values, partition=partition, key=key)
        )

    def records(self, topic: str, partition: int | None = None) -> list[StoredRecord]:
        """The records of one partition, or of all. Raises ``KeyError`` for an unknown one."""
        return self.call(lambda broker: broker.records(topic, partition))

    def requests(self, api: str | None = None) -> list[LoggedRequest]:
        """The latest requests of all clients, oldest first; of one API when it is named."""
        return self.call(lambda broker: broker.requests(api))

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """A group as it is now; ``None`` for none."""
        return self.call(lambda broker: broker.snapshot(group_id))

    def restart(self) -> None:
        """Crash and come back with topics, records and groups; every connection is closed."""
        self.call(lambda broker: broker.restart())

    def wait_for(self, predicate: Callable[[MockBroker], bool], timeout_s: float = 10) -> None:
        """Block until a predicate of the broker holds; it is looked at after everything that the
        broker does, in the broker's thread. Raises ``TimeoutError``."""
        if self._portal is None or self._broker is None:
            raise RuntimeError("the broker runs inside of its with block")
        broker = self._broker

        async def wait() -> None:
            await broker.wait_for(lambda: predicate(broker), timeout_s)

        self._portal.call(wait)
