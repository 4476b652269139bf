"""``AIOKafkaConsumer``: aiokafka's class with our consumer inside.

The methods that instrumentation wraps (``getone``, ``getmany``, ``__anext__``, ``commit``) are
inherited from aiokafka's class, so that wrapping works before and after the import was changed.
Overridden are start and stop, and the methods that would wait for aiokafka's own internals.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection
from typing import Any, Final, Self, TypeVar

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._coordinator import Coordinator
from kip848_client.aiokafka._fetcher import Fetcher
from kip848_client.aiokafka._members import enlist
from kip848_client.aiokafka._parents import AIOKafkaConsumer as TheirConsumer
from kip848_client.aiokafka._parents import errors
from kip848_client.aiokafka._settings import consumer_settings
from kip848_client.aiokafka._subscription import Subscription
from kip848_client.aiokafka.errors import Translating
from kip848_client.aiokafka.structs import TopicPartition
from kip848_client.consumer import Caller, GroupMetadata, MemberView, calling_task
from kip848_client.core.short import repr_at_any_time
from kip848_client.errors import CallbackError

__all__ = ["AIOKafkaConsumer"]

_log = logging.getLogger("kip848_client")

_translating: Final = Translating()

F = TypeVar("F", bound=Callable[..., Any])


def _marked_as_coroutine(function: F) -> F:
    """Mark a function that returns a coroutine as a coroutine function, so that stand-ins for it
    (``unittest.mock.AsyncMock(spec=...)``) can be awaited."""
    mark: Any = getattr(inspect, "markcoroutinefunction", None)  # since Python 3.12
    if mark is not None:
        marked: F = mark(function)
        return marked
    was_marked: Any = getattr(asyncio.coroutines, "_is_coroutine")  # noqa: B009 - not in typeshed
    setattr(function, "_is_coroutine", was_marked)  # noqa: B010 - as before
    return function


class AIOKafkaConsumer(TheirConsumer):  # type: ignore[misc]  # aiokafka has no types
    """``aiokafka.AIOKafkaConsumer`` on KIP-848.

    Arguments, methods, results and errors are aiokafka's; docs/how-to/come-from-aiokafka.md says
    what differs.

    Args:
        *topics: Names of topics to subscribe to.
        **settings: aiokafka's, and those of ``kip848_client.Consumer``, such as
            ``group_remote_assignor``. Settings of the classic protocol are accepted and reported
            once, each with what to set on the broker instead. ``strict=True`` refuses them.

    Raises:
        TypeError: A setting is unknown.
        ValueError: A setting is wrong.
    """

    _closed: bool | None

    def __init__(self, *topics: str, **settings: Any) -> None:
        for_theirs, for_ours = consumer_settings(settings)
        super().__init__(**for_theirs)
        try:
            with _translating:
                inner = ConsumerAdapter(**for_ours)
        except BaseException:
            self._closed = True  # otherwise ``__del__`` would report it as not closed
            raise
        self._inner = inner
        self._client: Any = LinkedClient.like(self._client)
        self._subscription: Any = Subscription(
            inner, self._client, with_internal=not self._exclude_internal_topics
        )
        subscription = self._subscription
        self._coordinator: Any = Coordinator(
            inner, self._client, self._group_id, vars(self), lambda: subscription.is_revoking
        )
        self._fetcher: Any = Fetcher(inner, self._subscription)
        if topics:
            self._subscription.subscribe(self._validate_topics(topics))

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<AIOKafkaConsumer of kip848_client, group={self._group_id!r}>"

    # -- ours ------------------------------------------------------------------------------------

    @property
    def inner(self) -> ConsumerAdapter:
        """The consumer that does the work."""
        return self._inner

    @property
    def member(self) -> MemberView | None:
        """The current membership; see ``kip848_client.Consumer.member``."""
        return self._inner.member

    def group_metadata(self) -> GroupMetadata:
        """Identify this member for ``AIOKafkaProducer.send_offsets_to_transaction``.

        Take a new snapshot for each transaction.

        Returns:
            The group, the member id and its epoch.

        Raises:
            IllegalStateError: There is no ``group_id``.
        """
        with _translating:
            return self._inner.group_metadata()

    # -- aiokafka's ------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self) -> None:
        """Connect, join the group, and wait for the first assignment.

        Waits for at most ``request_timeout_ms``. If the group has settled without partitions for
        this member, it waits for about one and a half heartbeat intervals more: others may be about
        to give some up.

        Raises:
            KafkaConnectionError: No broker answers.
            UnsupportedVersionError: The broker does not have KIP-848.
            AssertionError: ``start`` was called before.
        """
        inner = self._inner
        with _translating:
            inner.check_home()
        assert not inner.was_started, "Did you call `start` twice?"
        try:
            with _translating:
                await inner.start()
                enlist(inner)
                await self._client.begin(inner.transport)
                await self._subscription.begin()
                await inner.settled(self._request_timeout_ms / 1000)
        except BaseException:
            await self.stop()
            raise

    @_marked_as_coroutine
    def stop(self) -> Any:
        """Commit what is done (with auto-commit), leave the group, and disconnect.

        Waits for the tasks that hold records, see ``kip848_client.Consumer.stop``. The records of
        the calling task are done, whichever task awaits the result (``asyncio.gather`` makes one).
        A second call does nothing.

        Returns:
            A coroutine; await it.

        Raises:
            IllegalStateError: The call comes from a method of the listener, or from another event
                loop. What a listener raises is logged.
        """
        return self._stop(calling_task())

    async def _stop(self, caller: Caller) -> None:
        if self._closed:
            return
        try:
            with _translating:
                self._inner.check_home()
                await self._stop_inner(caller)
        finally:
            self._closed = self._inner.is_over or not self._inner.was_started
            if self._closed:
                await self._subscription.end()
                await self._client.close()

    async def _stop_inner(self, caller: Caller) -> None:
        try:
            await self._inner.stop_for(caller)
        except CallbackError:  # aiokafka logs what a listener raises
            _log.exception("the rebalance listener failed")

    async def position(self, partition: Any) -> int:
        """Get the offset of the next record, waiting until it is known.

        Args:
            partition: A ``TopicPartition``.

        Returns:
            The offset.

        Raises:
            IllegalStateError: The partition is not assigned, or not any more.
        """
        with _translating:
            return await self._inner.position(partition)

    async def topics(self) -> Any:
        """List the topics that this principal may see.

        Returns:
            Their names.

        Raises:
            KafkaError: The brokers gave no answer, or refused.
        """
        with _translating:
            self._inner.check_home()
        return await super().topics()

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Get the partitions of a topic, without a request.

        Args:
            topic: Name of the topic.

        Returns:
            Their numbers, ``None`` if they are not known.

        Raises:
            IllegalStateError: The call comes from another event loop, thread or process.
        """
        found: Any = None
        if self._inner.was_started and not self._inner.is_over:
            with _translating:
                found = self._inner.partitions_for_topic(topic)
        return set(found) if found else self._client.cluster.partitions_for_topic(topic)

    async def seek_to_beginning(self, *partitions: Any) -> bool:
        """Move the positions to the first offset of the log.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            Always ``True``.

        Raises:
            IllegalStateError: One of them is not assigned.
            TypeError: One of them is not a ``TopicPartition``.
            AssertionError: Nothing is assigned.
            KafkaError: The leaders gave no answer, or refused.
        """
        with _translating:
            return await self._inner.seek_to_beginning(*self._chosen(partitions))

    async def seek_to_end(self, *partitions: Any) -> bool:
        """Move the positions behind the last record of the log.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            Always ``True``.

        Raises:
            IllegalStateError: One of them is not assigned.
            TypeError: One of them is not a ``TopicPartition``.
            AssertionError: Nothing is assigned.
            KafkaError: The leaders gave no answer, or refused.
        """
        with _translating:
            return await self._inner.seek_to_end(*self._chosen(partitions))

    async def seek_to_committed(self, *partitions: Any) -> dict[Any, int | None]:
        """Move the positions to the committed offsets.

        Args:
            *partitions: Which ones; default: all that are assigned.

        Returns:
            The committed offset of each partition, ``None`` where there is none.

        Raises:
            IllegalOperation: There is no ``group_id``.
            IllegalStateError: One of them is not assigned.
            TypeError: One of them is not a ``TopicPartition``.
            AssertionError: Nothing is assigned.
            KafkaError: The coordinator gave no answer, or refused.
        """
        chosen = self._chosen(partitions)
        if self._group_id is None:
            raise errors.IllegalOperation("Requires group_id")
        with _translating:
            found = await self._inner.seek_to_committed(*chosen)
        return {TopicPartition(*tp): offset for tp, offset in found.items()}

    def _chosen(self, partitions: tuple[Any, ...]) -> Collection[Any]:
        """Choose and check partitions as aiokafka's methods do."""
        if not all(isinstance(each, TopicPartition) for each in partitions):
            raise TypeError("partitions must be TopicPartition instances")
        assigned = self.assignment()
        assert partitions or assigned, "No partitions are currently assigned"
        foreign = {*partitions} - assigned
        if foreign:
            raise errors.IllegalStateError(f"Partitions {foreign} are not assigned")
        return partitions or assigned
