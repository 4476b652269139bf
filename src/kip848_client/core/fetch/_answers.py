"""How a Fetch response changes the partitions in it, and how soon its broker is asked again.

An answer counts for a partition only if it matches the latest request: same generation, same
offset. Records fetched before an error are valid and are delivered first.

The general rule of progress: a request may wait at the broker, so an early answer should bring
something. After an early answer that moved nothing, the broker rests, longer each time in a row,
whatever the reason. So no answer of any broker leads to a loop without pauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.cluster import NO_NODE, Leaders, MetadataQuestions
from kip848_client.core.empty import EMPTY
from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._batch_headers import read_headers
from kip848_client.core.fetch._chunked_answers import ChunkedAnswer
from kip848_client.core.fetch._commands import Commands, Notice, Positioned, Readable, UseEndpoints
from kip848_client.core.fetch._error_rules import QUIET_MS, fetch_error, reaction, reaction_to_whole
from kip848_client.core.fetch._events import FetchAnswered
from kip848_client.core.fetch._model import (
    EpochEnd,
    FetchAnswer,
    FetchSettings,
    PartitionAnswer,
    Slice,
    Wanted,
)
from kip848_client.core.fetch._partition import Partition, Phase
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._planner import Node, OpenFetch, Planner
from kip848_client.core.fetch._position_changes import PositionChanges
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicIdPartition
from kip848_client.error_codes import error_name
from kip848_client.errors import Kip848Error, LogTruncated, RecordUnreadable, broker_error

__all__ = ["Answers"]

AVOID_LOST_MS: Final = 30_000
"""How long to avoid a replica that did not answer."""
SHORTEST_WAIT_MS: Final = 20
"""A request that may not wait is expected to bring something no sooner than one that may wait this
long."""
MOVES_MAX: Final = 3
"""How many times in a row a partition follows the hints of brokers at once."""

_Errors = dict[tuple[int, str], Kip848Error]
"""One error for all partitions of a topic that an answer refuses alike: reported once."""


@dataclass(slots=True)
class _Taking:
    """An answer that is being processed."""

    now_ms: int
    node: Node | None = None
    """The broker that sent it; ``None`` where none of its rows counts."""
    fetch: OpenFetch | None = None
    asked: Mapping[TopicIdPartition, Wanted] = EMPTY
    is_throttled: bool = False
    progress: bool = False
    errors: _Errors = field(default_factory=dict[tuple[int, str], Kip848Error])


class Answers:
    """Processes Fetch responses."""

    def __init__(
        self,
        settings: FetchSettings,
        jitter: Jitter,
        assigned: Assigned,
        leaders: Leaders,
        buffer: UnreadSlices,
        metadata: MetadataQuestions,
        planner: Planner,
        partition_errors: PartitionErrors,
        position_changes: PositionChanges,
        queries: Queries,
        out: Commands,
    ) -> None:
        self.stale = 0
        """Number of rows for something other than what is wanted now."""
        self._settings = settings
        self._jitter = jitter
        self._assigned = assigned
        self._leaders = leaders
        self._buffer = buffer
        self._metadata = metadata
        self._planner = planner
        self._partition_errors = partition_errors
        self._position_changes = position_changes
        self._queries = queries
        self._out = out

    # -- whole answers -----------------------------------------------------------------------

    def answered(self, now_ms: int, event: FetchAnswered) -> ChunkedAnswer[PartitionAnswer]:
        """Handle a broker's answer. The broker must not be asked again before the last row is
        processed."""
        taking = _Taking(now_ms)
        return ChunkedAnswer(
            partial(self._begin, taking, event),
            partial(self._take, taking),
            resume=partial(self._resume, taking),
            end=partial(self._end, taking),
        )

    def _begin(self, taking: _Taking, event: FetchAnswered) -> Sequence[PartitionAnswer]:
        ended = self._planner.ended(event.fetch)
        if ended is None:
            return ()
        node, fetch = ended
        asked = self._whole(taking.now_ms, node, event.answer)
        if asked is None:
            return ()
        taking.node, taking.fetch, taking.asked = node, fetch, asked
        taking.is_throttled = event.answer.throttle_time_ms > 0
        return event.answer.partitions

    def _whole(
        self, now_ms: int, node: Node, answer: FetchAnswer
    ) -> Mapping[TopicIdPartition, Wanted] | None:
        """Handle the part of the answer that concerns the broker. Returns what was requested, or
        ``None`` if none of its partition rows count."""
        node.lost_since_ms = None
        node.throttled_until_ms = now_ms + max(0, answer.throttle_time_ms)
        if answer.nodes:
            self._leaders.nodes |= {each.node for each in answer.nodes}
            self._out.append(UseEndpoints(answer.nodes))
        effect = node.session.on_answer(now_ms, answer)
        if effect.warning is not None:
            self._out.append(Notice(effect.warning, warning=True))
        if effect.learn_leaders:
            self._want_all(node, f"broker {node.node} does not know the ids of topics")
        if not effect.usable:
            if effect.rest:
                self._rest(now_ms, node)
            if reaction_to_whole(answer.error_code).stops and effect.failures > 1:
                code = answer.error_code
                where = f"broker {node.node}"
                self._stop_all(node, broker_error(code, error_name(code), where, api="Fetch"))
            return None
        return effect.asked

    def _take(self, taking: _Taking, told: PartitionAnswer) -> None:
        node = taking.node
        assert node is not None, "there are rows of it"
        key = told.key
        partition = self._assigned.at(key)
        if (
            partition is None
            or partition.phase is not Phase.READY
            or partition.generation != node.generations.get(key)
            or partition.fetch_offset != taking.asked[key].offset
        ):
            self.stale += 1
            taking.progress = True  # the next request asks for something else
        elif self._on_partition(taking.now_ms, node, partition, told, taking.errors):
            taking.progress = True

    def _resume(self, taking: _Taking) -> bool:
        """Whether nothing was restarted meanwhile."""
        node = taking.node
        return node is not None and self._planner.nodes.get(node.node) is node

    def _end(self, taking: _Taking) -> None:
        now_ms, node, fetch = taking.now_ms, taking.node, taking.fetch
        if node is None or fetch is None:
            return
        wait_ms = max(fetch.max_wait_ms, SHORTEST_WAIT_MS)
        if taking.progress or now_ms - fetch.sent_ms >= wait_ms // 2:
            node.failures = 0
        elif not taking.is_throttled:
            self._rest(now_ms, node)

    def lost(
        self, now_ms: int, node: Node, why: str, error: Kip848Error | None, *, sent: bool
    ) -> None:
        """Handle a request that got no answer."""
        if sent:
            node.session.lost()
        else:
            self._planner.unsent(node)
        self._rest(now_ms, node)
        self._complain(now_ms, node, why)
        self._want_all(node, f"broker {node.node} did not answer: {why}")
        if error is not None:
            self._stop_all(node, error)
        for partition in tuple(node.ring.values()):
            if self._planner.replicas.failed(now_ms, partition, node.node, AVOID_LOST_MS):
                self._planner.refresh(now_ms, partition)

    def _complain(self, now_ms: int, node: Node, why: str) -> None:
        """Report a broker that has not answered for a long time, once."""
        if node.lost_since_ms is None:
            node.lost_since_ms, node.noticed = now_ms, False
        lasts_ms = now_ms - node.lost_since_ms
        if lasts_ms >= QUIET_MS and not node.noticed:
            node.noticed = True
            text = f"broker {node.node} has not answered for {lasts_ms // 1000} s: {why}"
            self._out.append(Notice(f"{text}. Retrying.", warning=True))

    def _rest(self, now_ms: int, node: Node) -> None:
        settings = self._settings
        pause_ms = backoff_ms(
            node.failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
        node.failures += 1
        node.rest_until_ms = now_ms + pause_ms

    def _want_all(self, node: Node, why: str) -> None:
        for topic in {each.tp[0]: None for each in node.ring.values()}:
            self._metadata.want(topic, why)

    def _stop_all(self, node: Node, error: Kip848Error) -> None:
        for partition in tuple(node.ring.values()):
            self._stop(partition, error)

    def _stop(self, partition: Partition, error: Kip848Error) -> None:
        self._partition_errors.stop(partition, error, Phase.READY)
        self._planner.remove(partition)

    # -- one partition -----------------------------------------------------------------------

    def _on_partition(
        self,
        now_ms: int,
        node: Node,
        partition: Partition,
        told: PartitionAnswer,
        errors: _Errors,
    ) -> bool:
        """Returns whether anything moved, or the partition rests on its own account."""
        if told.error_code:
            self._on_error(now_ms, node, partition, told, errors)
            return True
        if told.diverging is not None:
            self._on_diverging(now_ms, partition, told.diverging)
            return True
        _note_ends(partition, told)
        if told.preferred_replica not in (NO_NODE, node.node):
            if not self._planner.replicas.named(now_ms, partition, told.preferred_replica):
                self._partition_errors.rest_quietly(now_ms, partition)
            self._partition_errors.alarm(partition, partition.lease_until_ms)
            self._planner.refresh(now_ms, partition)
            return True
        if told.records and self._on_records(now_ms, node, partition, told):
            return True
        if self._settings.read_committed and 0 <= told.last_stable_offset < partition.fetch_offset:
            # beyond the last stable offset, brokers answer at once with no data
            self._partition_errors.rest_quietly(now_ms, partition)
            self._planner.refresh(now_ms, partition)
            return True
        self._reset_failures(partition)
        return False

    def _on_records(
        self, now_ms: int, node: Node, partition: Partition, told: PartitionAnswer
    ) -> bool:
        cursor = partition.cursor
        assert cursor is not None
        aborted = told.aborted if self._settings.read_committed else ()
        at = partition.fetch_offset
        headers = read_headers(told.records, at, partition.fetch_epoch, aborted)
        if headers.batches:
            after, epoch = headers.next_offset, headers.last_epoch
            piece = Slice(cursor, at, after, epoch, told.records, headers.batches)
            partition.fetch_offset, partition.fetch_epoch = after, epoch
            self._buffer.append(partition, node.node, piece)
            self._planner.served(partition)
            self._reset_failures(partition)
            if partition.readable:
                self._out.append(Readable())
        if headers.garbled is not None:
            offset = headers.garbled.offset
            where = f"{shown(partition.tp)} at offset {offset}"
            error = RecordUnreadable(
                f"{where}: broker {node.node} sent {headers.garbled.why}; seek past it to go on",
                topic=partition.tp[0],
                partition=partition.tp[1],
                offset=offset,
            )
            self.damaged(now_ms, partition, offset, error)
            return True
        if headers.batches:
            self._planner.refresh(now_ms, partition)
        return bool(headers.batches)

    def damaged(
        self,
        now_ms: int,
        partition: Partition,
        offset: int,
        error: Kip848Error,
        *,
        is_final: bool = False,
    ) -> None:
        """Handle bytes that cannot be decoded from this offset on. They may have been damaged in
        transit only, so they are fetched once more before the partition stops, unless the damage is
        known to be final."""
        if is_final or partition.refetched_at == offset:
            self._stop(partition, error)
        else:
            partition.refetched_at = offset
            self._partition_errors.rest(now_ms, partition, str(error))
            self._planner.refresh(now_ms, partition)

    def _reset_failures(self, partition: Partition) -> None:
        partition.reset_failures()
        self._position_changes.served(partition)

    # -- errors ------------------------------------------------------------------------------

    def _on_error(
        self,
        now_ms: int,
        node: Node,
        partition: Partition,
        told: PartitionAnswer,
        errors: _Errors,
    ) -> None:
        code, topic = told.error_code, partition.tp[0]
        rule = reaction(code)
        why = f"broker {node.node}: {error_name(code)}"
        if rule.hint and told.leader is not None and self._moved(partition, told.leader):
            partition.failures += 1
            if partition.failures > MOVES_MAX:
                self._partition_errors.rest(now_ms, partition, why)
            self._planner.refresh(now_ms, partition)
        elif self._is_replica(now_ms, node, partition):
            # the leader knows better, so ask it at once
            self._planner.refresh(now_ms, partition)
        elif rule.check:
            self._position_changes.check(now_ms, partition)
        elif rule.tries is not None and partition.failures >= rule.tries:
            if (code, topic) not in errors:
                errors[code, topic] = fetch_error(code, partition.tp, partition.fetch_offset)
            self._stop(partition, errors[code, topic])
        else:
            self._partition_errors.rest(now_ms, partition, why)
            self._planner.refresh(now_ms, partition)
        since_ms = partition.troubled_since_ms
        lasts_ms = 0 if since_ms is None else now_ms - since_ms
        if rule.doubt_after_ms is not None and lasts_ms >= rule.doubt_after_ms:
            self._leaders.doubt(partition.key, partition.fetch_epoch)
        if rule.learn and lasts_ms >= rule.learn_after_ms:
            self._metadata.want(topic, why)

    def _is_replica(self, now_ms: int, node: Node, partition: Partition) -> bool:
        """Whether the broker is not the partition's leader; if so, it is avoided for a lease."""
        lease_ms = self._settings.metadata_max_age_ms
        self._planner.replicas.failed(now_ms, partition, node.node, lease_ms)
        leader = self._leaders.at(partition.key)
        return leader is not None and leader.leader not in (node.node, NO_NODE)

    def _moved(self, partition: Partition, leader: tuple[int, int]) -> bool:
        """Whether the refusal names another leader that can be asked at once (KIP-951)."""
        node, epoch = leader
        if node != NO_NODE and node not in self._leaders.nodes:
            return False
        if not self._leaders.hint(partition.key, node, epoch):
            return False
        self._queries.leader_hinted()
        return node != NO_NODE

    # -- truncation --------------------------------------------------------------------------

    def _on_diverging(self, now_ms: int, partition: Partition, end: EpochEnd) -> None:
        """Handle a broker's log that differs from what was read (KIP-320). Records delivered from
        beyond the end of the epoch, or with a later epoch, are invalid."""
        cursor = partition.cursor
        assert cursor is not None
        if end.epoch < 0 or end.end_offset < 0:
            self._position_changes.check(now_ms, partition)
            return
        asked = (partition.fetch_offset, partition.fetch_epoch)
        offset, epoch = self._buffer.cut(partition, end)
        generation = self._assigned.new_generation()
        if cursor.consumed <= end.end_offset and cursor.consumed_epoch <= end.epoch:
            partition.renew(generation, offset, epoch)
        else:
            self._buffer.clear(partition)  # the application may be in the middle of what is left
            self._on_truncated(partition, generation, end)
        if partition.phase is Phase.READY:
            if (partition.fetch_offset, partition.fetch_epoch) == asked:
                self._partition_errors.rest(now_ms, partition, "its log differs from what was read")
            self._planner.refresh(now_ms, partition)

    def _on_truncated(self, partition: Partition, generation: int, end: EpochEnd) -> None:
        """Report that the application has seen records that no longer exist."""
        tp, cursor = partition.tp, partition.cursor
        assert cursor is not None
        position, at = cursor.consumed, min(cursor.consumed, end.end_offset)
        text = (
            f"{shown(tp)}: records before offset {position} that were handed out are not in "
            f"the log any more; it differs from offset {at} on (leader epoch {end.epoch})"
        )
        if self._settings.reset_policy == "none":
            partition.renew(generation, position, cursor.consumed_epoch)
            error = LogTruncated(
                f"{text}, and auto_offset_reset is 'none'; seek to {at} to go on there",
                topic=tp[0],
                partition=tp[1],
                offset=position,
                start=partition.log_start_offset or 0,
                end=at,
                leader_epoch=end.epoch,
            )
            self._stop(partition, error)
        else:
            partition.stand_at(generation, at, end.epoch)
            self._out.append(Notice(f"{text}; continues there", warning=True, partition=tp))
            self._out.append(Positioned(tp, at, end.epoch, committed=False))


def _note_ends(partition: Partition, told: PartitionAnswer) -> None:
    if told.high_watermark >= 0:
        partition.high_watermark = told.high_watermark
    if told.last_stable_offset >= 0:
        partition.last_stable_offset = told.last_stable_offset
    if told.log_start_offset >= 0:
        partition.log_start_offset = told.log_start_offset
