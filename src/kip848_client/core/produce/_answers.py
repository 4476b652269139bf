"""Handles answered and lost Produce requests.

Each answer that does not finish a batch makes its partition back off, for longer each time in a
row. The exception is a hint to another leader, which is followed at once a limited number of times.
So no sequence of answers leads to a loop without pauses. A batch that the answer leaves out counts
as unanswered; anything in the answer that was not asked for is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.cluster import Leaders
from kip848_client.core.partition_names import shown
from kip848_client.core.produce._accumulator import Accumulator
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._commands import BatchDone, BatchFailed, BatchSplit, Command
from kip848_client.core.produce._error_rules import (
    Api,
    Reaction,
    may_be_written,
    produce_error,
    reaction,
)
from kip848_client.core.produce._interfaces import ProducerIdentity
from kip848_client.core.produce._model import Place, Produced, ProduceSettings
from kip848_client.core.produce._partition import Partition
from kip848_client.core.produce._sender import Node, OpenProduce, Sender
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import BrokerError, DeliveryTimedOut, Kip848Error

__all__ = ["Answers"]

MOVES_MAX: Final = 3
"""How often in a row a partition follows leader hints without backing off."""
_NO_OFFSET: Final = Place(-1, -1)
_LOST: Final = "the broker's answer did not mention the partition"


class Answers:
    """Handles answers. ``want_leaders`` takes a topic and the reason its leaders are needed;
    ``missing`` returns the brokers' error for a topic that does not exist."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        accumulator: Accumulator,
        sender: Sender,
        leaders: Leaders,
        identity: ProducerIdentity,
        emit: Callable[[Command], None],
        want_leaders: Callable[[str, str], None],
        missing: Callable[[str], BrokerError | None],
    ) -> None:
        self.has_gap = False
        """A batch with sequence numbers has failed since the last ``begin_anew``."""
        self._settings = settings
        self._jitter = jitter
        self._accumulator = accumulator
        self._sender = sender
        self._leaders = leaders
        self._identity = identity
        self._emit = emit
        self._want_leaders = want_leaders
        self._missing = missing

    # -- requests ----------------------------------------------------------------------------

    def answered(
        self, now_ms: int, produce: OpenProduce, told: Mapping[TopicPartition, Produced]
    ) -> None:
        """A broker answered or, with acks=0, the request was sent."""
        produce.node.failures = 0
        for batch in produce.batches:
            partition = self._accumulator.partitions[batch.tp]
            said = told.get(batch.tp)
            if self._settings.acks == 0:
                self._done(now_ms, partition, batch, _NO_OFFSET)
            elif said is None:
                batch.doubt = True
                self._again(now_ms, partition, batch, _LOST)
            elif said.error_code:
                self._refused(now_ms, produce.node, partition, batch, said)
            else:
                place = Place(said.base_offset, said.log_append_time_ms, said.log_start_offset)
                self._done(now_ms, partition, batch, place)
            self._settle_doubts(now_ms, partition)
            self._sender.place(now_ms, partition)

    def lost(
        self,
        now_ms: int,
        produce: OpenProduce,
        why: str,
        fatal: Kip848Error | None,
        *,
        maybe_sent: bool,
    ) -> None:
        """No answer arrived."""
        node, settings = produce.node, self._settings
        if node.rest_until_ms <= now_ms:
            node.rest_until_ms = now_ms + self._pause_ms(node.failures)
            node.failures += 1
        why = f"broker {node.number} did not answer: {why}"
        for batch in produce.batches:
            partition = self._accumulator.partitions[batch.tp]
            batch.doubt |= maybe_sent
            if fatal is not None:
                self.fail(now_ms, batch, fatal, Reaction.FATAL)
            elif settings.acks == 0 and maybe_sent:
                error = DeliveryTimedOut(
                    f"{shown(batch.tp)}: {_count(batch)} may or may not be written: the connection "
                    f"was lost on the way, and acks=0 asks for no answer; {why}",
                    maybe_written=True,
                )
                self.fail(now_ms, batch, error, Reaction.ABORT)
            else:
                self._again(now_ms, partition, batch, why)
                partition.left = node.number
                self._want_leaders(batch.tp[0], why)
            self._settle_doubts(now_ms, partition)
            self._sender.place(now_ms, partition)

    # -- single batches ----------------------------------------------------------------------

    def _done(self, now_ms: int, partition: Partition, batch: Batch, place: Place) -> None:
        partition.reset_failures()
        partition.sequences.written(now_ms, batch)
        self._identity.written(batch.producer)
        if not batch.is_over:
            self._end_well(batch, place)

    def _end_well(self, batch: Batch, place: Place) -> None:
        self._accumulator.end(batch)
        self._emit(BatchDone(batch.number, place))

    def _refused(
        self, now_ms: int, node: Node, partition: Partition, batch: Batch, said: Produced
    ) -> None:
        code = said.error_code
        why = f"broker {node.number}: {error_name(code)}"
        if said.error_message:
            why = f"{why}: {said.error_message}"
        to_do = reaction(Api.PRODUCE, code)
        if to_do is Reaction.DONE:
            self._done(now_ms, partition, batch, _NO_OFFSET)
        elif to_do in (Reaction.RETRY, Reaction.REFRESH):
            batch.doubt |= may_be_written(code)
            at_once = to_do is Reaction.REFRESH and self._moved(node, partition, said)
            self._again(now_ms, partition, batch, why, at_once=at_once, code=code)
            if to_do is Reaction.REFRESH and not at_once:
                partition.left = node.number
                self._want_leaders(batch.tp[0], why)
        elif to_do is Reaction.REORDER:
            self._reorder(now_ms, partition, batch, why, said)
        elif to_do is Reaction.SPLIT and batch.records > 1 and self._split(partition, batch):
            pass
        else:
            to_do = Reaction.ABORT_AND_BUMP if to_do is Reaction.SPLIT else to_do
            error = produce_error(code, batch.tp, said.error_message)
            self.fail(now_ms, batch, error, to_do, _culprits(batch, said))

    def _again(
        self,
        now_ms: int,
        partition: Partition,
        batch: Batch,
        why: str,
        *,
        at_once: bool = False,
        code: int | None = None,
    ) -> None:
        """Queue the same batch again in its old place."""
        if batch.is_over:  # its result was reported; whether it is written is unknown
            self._hole(partition, batch)
            return
        partition.fail(now_ms, why, code)
        partition.wait_again(batch)
        # other batches in flight fail with the same error; count it once
        if not at_once and partition.rest_until_ms <= now_ms:
            partition.rest_until_ms = now_ms + self._pause_ms(partition.failures)
            partition.failures += 1

    def _pause_ms(self, failures: int) -> int:
        settings = self._settings
        return backoff_ms(
            failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )

    def _moved(self, node: Node, partition: Partition, said: Produced) -> bool:
        """Whether another leader is known that can be asked at once. The refusal may name it
        (KIP-951)."""
        topic_id = self._leaders.id_of(partition.tp[0])
        if topic_id is not None and said.leader is not None:
            to, epoch = said.leader
            if to in self._leaders.nodes:
                key = (topic_id, partition.tp[1])
                partition.moves += self._leaders.hint(key, to, epoch)
        leader = self._leaders.leader_of(partition.tp)
        is_other = leader is not None and leader[0] != node.number
        return is_other and partition.moves <= MOVES_MAX

    def _reorder(
        self, now_ms: int, partition: Partition, batch: Batch, why: str, said: Produced
    ) -> None:
        """Handle a refusal because the broker lacks the batches before this one."""
        if batch.is_over or not partition.is_first(batch):
            self._again(now_ms, partition, batch, why)
        elif self._settings.transactional_id is not None or not batch.has_sequence:
            error = produce_error(said.error_code, batch.tp, said.error_message)
            self.fail(now_ms, batch, error, Reaction.ABORT_AND_BUMP)
        elif batch.doubt:
            # an earlier attempt may have written it and the broker may have forgotten; only later
            # batches can show that
            partition.fail(now_ms, why, said.error_code)
            partition.unsettled.append(batch)
            partition.sequences.suspended = True
        else:
            self._hole(partition, batch)
            batch.forget_sequence()
            self._again(now_ms, partition, batch, why)

    def _settle_doubts(self, now_ms: int, partition: Partition) -> None:
        """Resolve the batches whose fate only later batches can show, where those have."""
        unsettled = partition.unsettled
        if not unsettled:
            return
        sequences = partition.sequences
        while unsettled and sequences.proves(unsettled[0]):
            self._end_well(unsettled.pop(0), _NO_OFFSET)
        if not unsettled:
            sequences.suspended = False
            return
        producer = unsettled[0].producer
        if any(each.producer == producer for each in partition.flying):
            return
        if any(each.producer == producer and each.doubt for each in partition.waiting):
            return
        for batch in tuple(unsettled):
            error = DeliveryTimedOut(
                f"{shown(batch.tp)}: an answer was lost, and {partition.trouble}: it is unknown "
                f"whether {_count(batch)} were written before that",
                maybe_written=True,
            )
            unsettled.remove(batch)
            self.fail(now_ms, batch, error, Reaction.ABORT_AND_BUMP)

    def _split(self, partition: Partition, batch: Batch) -> bool:
        if batch.is_over:
            return False
        builders = batch.builder.split()
        if len(builders) < 2:
            return False
        parts = self._accumulator.split(batch, builders)
        if batch.has_sequence:
            partition.sequences.split(batch, parts)
        told = tuple((each.number, each.records) for each in parts)
        self._emit(BatchSplit(batch.number, told))
        return True

    # -- failures ----------------------------------------------------------------------------

    def expire(self, now_ms: int, batch: Batch) -> None:
        """The delivery timeout is over. A batch in flight stays there: its answer shows whether the
        sequence has a gap."""
        partition = self._accumulator.partitions[batch.tp]
        doubt = batch.doubt or batch in partition.flying
        if doubt and partition.sequences.proves(batch):
            self._accumulator.withdraw(batch)
            self._end_well(batch, _NO_OFFSET)
            return
        why = partition.trouble or ("no answer yet" if doubt else "no broker was asked yet")
        outcome = "may or may not be" if doubt else "not"
        missing = self._missing(batch.tp[0])
        if missing is not None:
            why = f"{why}; and {missing}"
        limit_ms = self._settings.delivery_timeout_ms
        error = DeliveryTimedOut(
            f"{shown(batch.tp)}: {_count(batch)} {outcome} written: not acknowledged within "
            f"delivery_timeout_ms={limit_ms}; last: {why}",
            maybe_written=doubt,
            cause=missing,
            last_code=partition.trouble_code,
        )
        self._accumulator.withdraw(batch)
        self.fail(now_ms, batch, error, Reaction.ABORT)
        self._sender.place(now_ms, partition)

    def give_up(self, now_ms: int, batch: Batch, missing: BrokerError) -> None:
        """Fail a batch whose topic does not exist, because the producer is about to stop."""
        partition = self._accumulator.partitions[batch.tp]
        error: Kip848Error = missing
        if batch.doubt:
            error = DeliveryTimedOut(
                f"{shown(batch.tp)}: {_count(batch)} may or may not be written: {missing}",
                maybe_written=True,
                cause=missing,
                last_code=missing.code,
            )
        self._accumulator.withdraw(batch)
        self.fail(now_ms, batch, error, Reaction.ABORT)
        self._sender.place(now_ms, partition)

    def fail(
        self,
        now_ms: int,
        batch: Batch,
        error: Kip848Error,
        to_do: Reaction,
        culprits: Mapping[int, Kip848Error] | None = None,
    ) -> None:
        """A batch has failed permanently."""
        partition = self._accumulator.partitions[batch.tp]
        if batch not in partition.flying:
            self._hole(partition, batch)
        if batch.is_over:
            return
        if batch.has_sequence and to_do is Reaction.ABORT:
            to_do = Reaction.ABORT_AND_BUMP
        self._accumulator.end(batch)
        self._emit(BatchFailed(batch.number, error, culprits or {}, batch.tp.topic, batch.records))
        sent_as = batch.producer if batch.has_sequence else None
        self._identity.batch_failed(now_ms, sent_as, to_do, error)

    def drop(self, batch: Batch, error: Kip848Error) -> None:
        """Fail a batch that the transaction drops, without reporting the failure back to it."""
        self._accumulator.withdraw(batch)
        self._hole(self._accumulator.partitions[batch.tp], batch)
        self._accumulator.end(batch)
        self._emit(BatchFailed(batch.number, error, {}, batch.tp.topic, batch.records))

    def _hole(self, partition: Partition, batch: Batch) -> None:
        sequences = partition.sequences
        if batch.has_sequence and not sequences.proves(batch):
            sequences.broken = True
            self.has_gap = True


def _count(batch: Batch) -> str:
    return f"{batch.records} records" if batch.records != 1 else "1 record"


def _culprits(batch: Batch, said: Produced) -> Mapping[int, Kip848Error]:
    """The errors of the records that the broker names."""
    return {
        row: produce_error(ErrorCode.INVALID_RECORD, batch.tp, message)
        for row, message in said.record_errors.items()
        if 0 <= row < batch.records
    }
