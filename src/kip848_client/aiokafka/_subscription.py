"""Stands in for the ``SubscriptionState`` of aiokafka's consumer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Final

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._listener import ListenerInPairs
from kip848_client.aiokafka._matched_topics import MatchedTopics
from kip848_client.aiokafka._whole_topics import WholeTopics
from kip848_client.aiokafka.errors import Translating
from kip848_client.aiokafka.structs import OffsetAndMetadata, TopicPartition
from kip848_client.core.types import TopicPartition as OurPartition
from kip848_client.errors import ConsumerClosed

__all__ = ["Subscription"]

_translating: Final = Translating()
_NO_CONTEXT: Final[AbstractContextManager[None]] = nullcontext()

Partitions = Collection[Any]


class Subscription:
    """Topics and partitions to consume, by aiokafka's names; also its own ``subscription``."""

    def __init__(
        self, inner: ConsumerAdapter, client: LinkedClient, *, with_internal: bool = False
    ) -> None:
        self._inner = inner
        age_ms = inner.config.metadata_max_age_ms
        self._whole_topics: WholeTopics | None = None
        """Reads topics without a group."""
        self._matched = MatchedTopics(
            inner, client, age_ms, with_internal=with_internal, nothing=self._notify
        )
        if inner.config.group_id is None:
            self._whole_topics = WholeTopics(inner, client, age_ms, with_internal=with_internal)
        self._pairs = ListenerInPairs(inner, self._notify)
        self._topics: frozenset[str] = frozenset()
        self._manual = False
        self.subscribed_pattern: re.Pattern[str] | None = None
        self.listener: Any = None
        self._was_told = False
        """Whether there was an assignment, even an empty one, since ``subscribe``."""
        self._has_left = False
        """Whether nothing was assigned since ``unsubscribe``."""
        self._waiting: list[asyncio.Future[None]] = []

    # -- state -----------------------------------------------------------------------------------

    @property
    def topics(self) -> frozenset[str]:
        """The names subscribed to; with a pattern those that were found."""
        if self.subscribed_pattern is None:
            return self._topics
        if self._whole_topics is None:
            return self._matched.names
        return frozenset(tp.topic for tp in self._inner.assignment())

    @property
    def active(self) -> bool:
        """Whether anything is subscribed to or assigned."""
        return bool(self._topics) or self._manual or self.subscribed_pattern is not None

    @property
    def subscription(self) -> Subscription | None:
        """This object, while anything is subscribed to or assigned."""
        return self if self.active else None

    @property
    def assignment(self) -> Assignment | None:
        """The assignment; ``None`` before the first one from the group."""
        if not (self._manual or self._was_told):
            return None
        return Assignment(self._inner)

    def assigned_partitions(self) -> frozenset[Any]:
        """aiokafka's ``TopicPartition``s. Empty right after ``unsubscribe``, as in aiokafka,
        although the membership ends later, in the background."""
        if self._has_left:
            return frozenset()
        return frozenset(TopicPartition(*tp) for tp in self._inner.assignment())

    def is_assigned(self, tp: Any) -> bool:
        """Whether we own the partition."""
        return not self._has_left and tp in self._inner.assignment()

    @property
    def is_revoking(self) -> bool:
        """Whether ``on_partitions_revoked`` was called, and ``on_partitions_assigned`` not yet."""
        return self._pairs.is_revoking

    def partitions_auto_assigned(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.active and not self._manual

    def may_get(self, partitions: Partitions) -> bool:
        """Whether we own each of these, or the group may assign it to us."""
        ours = self._inner.assignment()
        return all(tp in ours or self._may_come(*tp) for tp in partitions)

    def _may_come(self, topic: str, partition: int) -> bool:
        if self._manual or topic not in self.topics:
            return False
        known = self._inner.partitions_for_topic(topic)
        return known is None or partition in known

    # -- changes ---------------------------------------------------------------------------------

    def subscribe(self, topics: AbstractSet[str], listener: Any = None) -> None:
        """Consume these topics."""
        with _translating:
            if self._whole_topics is None:
                self._inner.subscribe(topics, listener=self._pairs)
                self._matched.forget()
                self._pairs.listen(listener)
                self._inner.greet_listener()
            else:
                self._whole_topics.want(frozenset(topics), None)
        self._topics, self.listener = frozenset(topics), listener
        self.subscribed_pattern = None
        self._was_told = self._whole_topics is not None
        self._has_left = self._has_left and not self._was_told

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: Any = None) -> None:
        """Consume the topics that begin with a match of ``pattern``."""
        with _translating:
            if self._whole_topics is None:
                self._matched.want(pattern, self._pairs)
                self._pairs.listen(listener)
            else:
                self._whole_topics.want(frozenset(), pattern)
        self._topics, self.listener = frozenset(), listener
        self.subscribed_pattern = pattern
        self._was_told = self._whole_topics is not None
        self._has_left = self._has_left and not self._was_told

    def assign_from_user(self, partitions: Partitions) -> None:
        """Consume exactly these."""
        with _translating:
            if self._whole_topics is not None:
                self._whole_topics.check_unused()
            self._matched.check_unused()
            self._inner.assign(partitions)
        self._topics = frozenset(tp.topic for tp in partitions)
        self._manual = True
        self._notify()

    def unsubscribe(self) -> None:
        """Consume nothing more. Does nothing after a stop."""
        if self._whole_topics is not None:
            self._whole_topics.want(frozenset(), None)
        self._matched.forget()
        with _translating, suppress(ConsumerClosed):
            self._inner.unsubscribe()
        self._topics, self._manual = frozenset(), False
        self._was_told, self._has_left = False, True
        self.subscribed_pattern = self.listener = None

    def pause(self, tp: Any) -> None:
        """Deliver no records of the partition."""
        with _translating:
            self._inner.pause(tp)

    def resume(self, tp: Any) -> None:
        """Undo ``pause``."""
        with _translating:
            self._inner.resume(tp)

    def paused_partitions(self) -> set[Any]:
        """The paused partitions."""
        with _translating:
            return {TopicPartition(*tp) for tp in self._inner.paused()}

    def seek(self, tp: Any, offset: int) -> None:
        """Continue at this offset."""
        with _translating:
            self._inner.seek(tp, offset)

    # -- looking for topics ----------------------------------------------------------------------

    async def begin(self) -> None:
        """Find the topics to read, and keep looking. Raises aiokafka's errors."""
        await (self._whole_topics or self._matched).begin()

    async def end(self) -> None:
        """Stop looking for topics."""
        self._pairs.end()
        await (self._whole_topics or self._matched).end()

    # -- waiting ---------------------------------------------------------------------------------

    def fetch_context(self) -> AbstractContextManager[None]:
        """Nothing to do: our consumer notices polls by itself."""
        return _NO_CONTEXT

    def wait_for_assignment(self) -> asyncio.Future[None]:
        """Done at the next assignment from the group, even an empty one."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        return waiting

    def _notify(self) -> None:
        self._was_told, self._has_left = True, False
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


class Assignment:
    """The current assignment."""

    def __init__(self, inner: ConsumerAdapter) -> None:
        self._inner = inner
        self.everything: dict[Any, Any] | None = None
        """The last result of ``all_consumed_offsets``, by which a commit recognizes it."""
        self.active = True

    @property
    def tps(self) -> AbstractSet[Any]:
        """The partitions. Those that we owned before are contained, too, but not counted: the
        group's coordinator decides whether they may be committed."""
        return _Ours(self._inner)

    @property
    def commit_refresh_needed(self) -> asyncio.Event:
        """Set while the start position of a partition is unknown. It is only informative: setting
        it has no effect."""
        needed = asyncio.Event()
        if any(self._inner.position_now(tp) is None for tp in self._inner.assignment()):
            needed.set()
        return needed

    def state_value(self, tp: Any) -> PartitionState | None:
        """The state of a partition; ``None`` if it is not assigned."""
        if tp not in self._inner.assignment():
            return None
        return PartitionState(self._inner, OurPartition(*tp))

    def all_consumed_offsets(self) -> dict[Any, Any]:
        """The positions of the application, by partition."""
        at = {tp: self._inner.position_now(tp) for tp in self._inner.assignment()}
        self.everything = {
            TopicPartition(*tp): OffsetAndMetadata(offset, "")
            for tp, offset in at.items()
            if offset is not None
        }
        return self.everything


class PartitionState:
    """The state of one partition, by aiokafka's names."""

    def __init__(self, inner: ConsumerAdapter, tp: OurPartition) -> None:
        self._inner = inner
        self._tp = tp

    @property
    def highwater(self) -> int | None:
        """The partition's end when it was last fetched."""
        return self._inner.highwater(self._tp)

    @property
    def lso(self) -> int | None:
        """The last stable offset when it was last fetched."""
        return self._inner.last_stable_offset(self._tp)

    @property
    def timestamp(self) -> int | None:
        """When it was last fetched, in ms since 1970."""
        return self._inner.last_poll_timestamp(self._tp)

    @property
    def position(self) -> int | None:
        """The offset of the next record."""
        return self._inner.position_now(self._tp)

    @property
    def has_valid_position(self) -> bool:
        """Whether the position is known."""
        return self.position is not None

    @property
    def paused(self) -> bool:
        """Whether the application paused it."""
        return self._inner.is_paused(self._tp)


class _Ours(AbstractSet[Any]):
    def __init__(self, inner: ConsumerAdapter) -> None:
        self._inner = inner

    def __contains__(self, tp: object) -> bool:
        return isinstance(tp, tuple) and self._inner.may_commit(OurPartition(*tp))

    def __iter__(self) -> Iterator[Any]:
        return (TopicPartition(*tp) for tp in self._inner.assignment())

    def __len__(self) -> int:
        return len(self._inner.assignment())
