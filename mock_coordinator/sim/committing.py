"""Commits and positions of one process: the real ``OffsetTracker`` and ``CommitterCore``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kip848_client._types import ZERO_TOPIC_ID, TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.member import (
    AssignedPartition,
    CoordinatorLost,
    FlushOffsets,
    HeartbeatWanted,
    LossReason,
    OffsetsFlushed,
)
from kip848_client.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitCommand,
    CommitDone,
    CommitEvent,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommitterCore,
    CommitterSettings,
    CommitTimer,
    CoordinatorSuspect,
    EpochNoted,
    OffsetTracker,
    RefreshEpoch,
    SendCommit,
)
from kip848_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.lane import Answer
from mock_coordinator.sim.watch import Tag

if TYPE_CHECKING:
    from mock_coordinator.sim.process import MemberProcess

__all__ = ["Committing"]

_BY_TOPIC_ID: Final = 10
_MOVED: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_RETRY_MS: Final = 300
_MANUAL_DEADLINE_MS: Final = 20_000


class Committing:
    """What a consumer does about offsets."""

    def __init__(self, process: MemberProcess) -> None:
        options = process.scene.options
        self._process = process
        self.tracker = OffsetTracker()
        settings = CommitterSettings(
            auto_commit_interval_ms=5_000 if process.plan.auto_commit else None,
            request_timeout_ms=options.request_timeout_ms,
        )
        self._core = CommitterCore(settings, self.tracker, lambda pause_ms: pause_ms)
        self._tickets = 0
        self._flushes: dict[int, int] = {}
        self._timer: Timer | None = None
        self._ids: dict[TopicPartition, TopicId] = {}
        self._epoch: int | None = None
        self._sent = 0
        self._finding = False
        self._find_after_ms = 0

    # -- the committer -----------------------------------------------------------------------

    def note_epoch(self, epoch: int | None) -> None:
        """The member epoch changed."""
        self._epoch = epoch
        self._step(EpochNoted(epoch))

    def flush(self, command: FlushOffsets) -> None:
        """Commit before a revocation; the member is told when that is over."""
        self._tickets += 1
        self._flushes[self._tickets] = command.plan
        self._step(CommitAsked(self._tickets, CommitKind.REVOCATION, None, command.deadline_ms))

    def commit_all(self) -> None:
        """The user commits all positions."""
        self._tickets += 1
        deadline_ms = self._process.scene.kernel.now_ms + _MANUAL_DEADLINE_MS
        offsets = self.tracker.snapshot()
        self._step(CommitAsked(self._tickets, CommitKind.MANUAL, offsets, deadline_ms))

    def _step(self, event: CommitEvent) -> None:
        for command in self._core.step(self._process.scene.kernel.now_ms, event):
            self._perform(command)
        due_ms = self._core.deadline_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms is not None and self._process.alive:
            tick = self._tick
            self._timer = self._process.scene.kernel.at(due_ms, lambda: self._process.enter(tick))

    def _tick(self) -> None:
        self._step(CommitTimer())

    def _perform(self, command: CommitCommand) -> None:
        process = self._process
        match command:
            case SendCommit():
                self._send(command)
            case CommitDone():
                plan = self._flushes.pop(command.ticket or 0, None)
                if plan is not None:
                    if command.committed:
                        process.scene.probes.reached("commit before revocation")
                    process.feed(OffsetsFlushed(plan))
            case RefreshEpoch():
                process.feed(HeartbeatWanted())
            case CoordinatorSuspect():
                self._lost_coordinator(command.why)
            case _:
                raise AssertionError(command)

    def _lost_coordinator(self, why: str) -> None:
        self._process.coordinator_known = False
        self._process.feed(CoordinatorLost(why))

    # -- OffsetCommit ------------------------------------------------------------------------

    def name(self, partitions: Iterable[AssignedPartition]) -> None:
        """Remember which topic id a name stands for in the assignment."""
        for partition in partitions:
            self._ids[partition.tp] = partition.topic_id

    def _by_name(self, partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
        topics: dict[str, list[TopicPartition]] = {}
        for tp in sorted(partitions):
            topics.setdefault(tp.topic, []).append(tp)
        return topics

    def _id_of(self, tps: list[TopicPartition], version: int) -> TopicId:
        return self._ids[tps[0]] if version >= _BY_TOPIC_ID else ZERO_TOPIC_ID

    def _send(self, command: SendCommit) -> None:
        process, attempt = self._process, command.attempt
        if not process.coordinator_known:
            process.after(1, lambda: self._step(CommitLost(attempt, "no coordinator")))
            return
        version = process.scene.profile.api_versions["OffsetCommit"][1]
        epoch = command.member_epoch
        request = OffsetCommitRequest(
            group_id=process.group_id,
            member_id="" if epoch is None else process.member_id,
            generation_id_or_member_epoch=-1 if epoch is None else epoch,
            group_instance_id=None if epoch is None else process.plan.instance_id,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=topic,
                    topic_id=self._id_of(tps, version),
                    partitions=tuple(
                        OffsetCommitRequestPartition(
                            partition_index=tp.partition,
                            committed_offset=command.offsets[tp].offset,
                            committed_metadata="",
                        )
                        for tp in tps
                    ),
                )
                for topic, tps in self._by_name(command.offsets).items()
            ),
        )
        process.scene.watch.rates.asked(process.scene.kernel.now_ms, process, "commits")
        wanted = tuple(command.offsets)
        process.lane.call(
            request,
            version,
            command.timeout_ms,
            lambda answer: process.enter(lambda: self._answered(attempt, wanted, answer)),
            tag=Tag(process, process.heartbeats, epoch or 0),
        )

    def _answered(self, attempt: int, wanted: tuple[TopicPartition, ...], answer: Answer) -> None:
        if isinstance(answer, LossReason):
            if answer is not LossReason.NOT_SENT:
                self._lost_coordinator(f"commit {answer.value}")
            self._step(CommitLost(attempt, answer.value))
            return
        names = {self._ids[tp]: tp.topic for tp in wanted}
        results: dict[TopicPartition, CommitRefusal | None] = {}
        for topic in answer.topics:
            name = topic.name or names[TopicId(topic.topic_id)]
            for partition in topic.partitions:
                code = partition.error_code
                refusal = CommitRefusal(code, error_name(code)) if code else None
                results[TopicPartition(name, partition.partition_index)] = refusal
                if code == ErrorCode.STALE_MEMBER_EPOCH:
                    self._process.scene.probes.reached("stale commit")
        self._step(CommitAnswered(attempt, results))

    # -- OffsetFetch -------------------------------------------------------------------------

    def find_positions(self) -> None:
        """Ask for the committed offsets of partitions that may be read and have no position."""
        process = self._process
        if self._finding or self._epoch is None or not process.coordinator_known:
            return
        tps = [tp for tp in process.application.fetchable.values() if self.needs(tp)]
        if not tps:
            return
        wait_ms = self._find_after_ms - process.scene.kernel.now_ms
        self._finding = True
        if wait_ms > 0:
            process.after(wait_ms, self._find_again)
            return
        version = process.scene.profile.api_versions["OffsetFetch"][1]
        topics = tuple(
            OffsetFetchRequestTopics(
                name=topic,
                topic_id=self._id_of(of_topic, version),
                partition_indexes=tuple(tp.partition for tp in of_topic),
            )
            for topic, of_topic in self._by_name(tps).items()
        )
        group = OffsetFetchRequestGroup(
            group_id=process.group_id,
            member_id=process.member_id,
            member_epoch=self._epoch,
            topics=topics,
        )
        tenures = {tp: self.tracker.tenure(tp) for tp in tps}
        process.lane.call(
            OffsetFetchRequest(groups=(group,)),
            version,
            process.scene.options.request_timeout_ms,
            lambda answer: process.enter(lambda: self._found(tenures, answer)),
        )

    def needs(self, tp: TopicPartition) -> bool:
        """Whether a partition is read and its position is not known."""
        return self.tracker.owns(tp) and self.tracker.position(tp) is None

    def _find_again(self) -> None:
        self._finding = False
        self.find_positions()

    def _found(self, tenures: dict[TopicPartition, int], answer: Answer) -> None:
        process = self._process
        self._finding = False
        self._find_after_ms = process.scene.kernel.now_ms + _RETRY_MS
        if isinstance(answer, LossReason):
            if answer is not LossReason.NOT_SENT:
                self._lost_coordinator(f"offset fetch {answer.value}")
        elif answer.groups[0].error_code in _MOVED:
            self._lost_coordinator(error_name(answer.groups[0].error_code))
        elif answer.groups[0].error_code == ErrorCode.STALE_MEMBER_EPOCH:
            process.feed(HeartbeatWanted())
        elif answer.groups[0].error_code == 0:
            self._take(tenures, answer.groups[0])
        self.find_positions()

    def _take(self, tenures: dict[TopicPartition, int], group: OffsetFetchResponseGroup) -> None:
        ids: dict[Any, str] = {self._ids[tp]: tp.topic for tp in tenures}
        for topic in group.topics or ():
            name = topic.name or ids[TopicId(topic.topic_id)]
            for partition in topic.partitions:
                tp = TopicPartition(name, partition.partition_index)
                if partition.error_code or self.tracker.tenure(tp) != tenures.get(tp):
                    continue
                offset = max(partition.committed_offset, 0)
                position = f"{name}-{partition.partition_index}={offset}"
                self._process.scene.tell(self._process.name, "position", position)
                self.tracker.seek(tp, offset, committed=offset)
