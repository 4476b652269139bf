"""How metadata changes the assigned topics: leaders, ids, and deleted topics.

A topic that is deleted and recreated is another topic with the same name. A group assigns topics by
id: metadata with another id is not believed; it ends what is known of our topic, which is then
requested by id. A manual assignment is for the topic that first had the name. When its id is gone
and another topic has the name, that one starts over, as with nothing committed. But not at once: a
lagging broker knows neither the newest topic of a name nor that the previous one was deleted.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.cluster import Leaders, LeadersLearnt, MetadataQuestions, TopicLeaders
from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._commands import Commands, Notice
from kip848_client.core.fetch._error_rules import QUIET_MS
from kip848_client.core.fetch._partition import Partition, Phase
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, format_topic_id
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import TopicGone, broker_error

__all__ = ["Topics"]

CREATED_AGAIN_AFTER_MS: Final = 1_000
"""How long an id must be unknown before another topic of its name takes its place."""
GONE_AFTER_MS: Final = 30_000
"""How long an id must be unknown before its topic counts as deleted."""


class Topics:
    """Applies metadata to the assigned topics."""

    def __init__(
        self,
        assigned: Assigned,
        leaders: Leaders,
        metadata: MetadataQuestions,
        planner: Planner,
        partition_errors: PartitionErrors,
        position_changes: PositionChanges,
        out: Commands,
    ) -> None:
        self._assigned = assigned
        self._leaders = leaders
        self._metadata = metadata
        self._planner = planner
        self._partition_errors = partition_errors
        self._position_changes = position_changes
        self._out = out
        self._missing: dict[str, int] = {}
        """Topics unknown to the cluster, and since when."""
        self._noticed: set[str] = set()

    def forget(self, topic: str) -> None:
        """Forget a topic without assigned partitions."""
        self._missing.pop(topic, None)
        self._noticed.discard(topic)

    def learn(self, now_ms: int, event: LeadersLearnt, queried: frozenset[str]) -> None:
        """Process a metadata answer. ``queried``: topics with open look-ups by users."""
        if event.nodes:
            self._leaders.nodes = event.nodes
        watched = self._metadata.watched
        for told in event.topics:
            if told.error_code:
                self._on_error(now_ms, told)
            elif told.topic_id == ZERO_TOPIC_ID:
                continue
            elif told.topic in watched:
                self._on_topic(now_ms, told)
            elif told.topic in queried:
                self._leaders.learn(told)
        for topic_id in sorted(event.gone):
            self._on_gone(now_ms, topic_id)

    # -- existing topics ---------------------------------------------------------------------

    def _on_topic(self, now_ms: int, told: TopicLeaders) -> None:
        topic, topic_id = told.topic, told.topic_id
        partitions = [each for each in self._assigned.of_topic(topic) if not each.is_over]
        strangers = [each for each in partitions if each.topic_id not in (None, topic_id)]
        stay = bool(strangers) and not self._takes_over(now_ms, strangers, topic_id)
        if stay:
            for partition in strangers:
                if partition.topic_id is not None:
                    self._leaders.drop(partition.topic_id)
                self._planner.refresh(now_ms, partition)
            # some may still belong to the old topic, some to the new one
            partitions = [each for each in partitions if each.topic_id in (None, topic_id)]
        if not partitions:
            if not strangers:
                self._leaders.learn(told)  # a user may look up offsets by name
            return
        if not stay:  # their grace period continues
            self.forget(topic)
        before = dict(self._leaders.partitions_of(topic_id))
        self._leaders.learn(told)
        for partition in partitions:
            if partition.topic_id is None:
                self._assigned.learn_id(partition, topic_id)
            elif partition.topic_id != topic_id:
                self._position_changes.begin_anew(now_ms, partition, topic_id)
            if before.get(partition.tp[1]) != self._leaders.at(partition.key):
                self._partition_errors.wake(partition)
            self._planner.refresh(now_ms, partition)
        if any(each.by_hand for each in partitions):
            self._metadata.watch(topic, topic_id)

    def _takes_over(self, now_ms: int, partitions: list[Partition], topic_id: TopicId) -> bool:
        """Whether these partitions belong to this topic from now on."""
        if not all(each.by_hand for each in partitions):
            return False
        topic = partitions[0].tp[0]
        since_ms = self._missing.setdefault(topic, now_ms)
        self._metadata.ask_by_name_too(topic)
        if now_ms - since_ms < CREATED_AGAIN_AFTER_MS:
            return False
        text = (
            f"topic {topic} was deleted and created again: "
            f"it is {format_topic_id(topic_id)} now, and is read as if nothing were committed"
        )
        self._out.append(Notice(text, warning=True))
        return True

    # -- missing topics ----------------------------------------------------------------------

    def _on_gone(self, now_ms: int, topic_id: TopicId) -> None:
        """Handle an id unknown to the cluster. It may be too new: brokers learn of topics with a
        delay."""
        self._leaders.drop(topic_id)
        topic = self._assigned.topic_of(topic_id)
        if topic is None:
            return
        lost = [each for each in self._assigned.of_topic(topic) if each.topic_id == topic_id]
        since_ms = self._missing.setdefault(topic, now_ms)
        if lost[0].by_hand:
            self._metadata.ask_by_name_too(topic)
        if now_ms - since_ms >= GONE_AFTER_MS:
            self._tell_gone(now_ms, topic, lost)
        for partition in lost:
            self._planner.refresh(now_ms, partition)

    def _tell_gone(self, now_ms: int, topic: str, lost: list[Partition]) -> None:
        if lost[0].by_hand:
            error = TopicGone(
                f"topic {topic}, which was assigned by hand, is deleted; "
                "assign what is there now: a topic of the same name is another one",
                topic=topic,
            )
            for partition in lost:
                if partition.phase is not Phase.STOPPED:
                    self._position_changes.stop_for_good(now_ms, partition, error)
        elif topic not in self._noticed:
            self._noticed.add(topic)
            text = f"topic {topic} is assigned by the group, but the cluster does not know its id"
            self._out.append(Notice(f"{text}; is it deleted?", warning=True))

    def _on_error(self, now_ms: int, told: TopicLeaders) -> None:
        code = told.error_code
        topic = told.topic if told.topic in self._metadata.watched else None
        topic = topic or self._assigned.topic_of(told.topic_id)
        if topic is None:
            return
        if code == ErrorCode.UNKNOWN_TOPIC_ID:
            self._on_gone(now_ms, told.topic_id)
            return
        partitions = self._assigned.of_topic(topic)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or is_retriable(code):
            since_ms = self._missing.setdefault(topic, now_ms)
            if now_ms - since_ms >= QUIET_MS and topic not in self._noticed:
                self._noticed.add(topic)
                text = f"topic {topic} is assigned, but no broker has it: {error_name(code)}"
                self._out.append(Notice(f"{text}. Retrying.", warning=True))
        else:
            error = broker_error(code, error_name(code), f"topic {topic}", api="Metadata")
            for partition in partitions:
                if partition.phase is Phase.READY:
                    self._partition_errors.stop(partition, error, Phase.READY)
        for partition in partitions:
            self._planner.refresh(now_ms, partition)
