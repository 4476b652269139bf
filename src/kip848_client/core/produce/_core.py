"""The producer's main state machine.

Theory of operation
-------------------
Records are appended between steps, without events: ``add`` puts a record into the open batch of its
partition. If there is none, or it is full, ``append`` begins a new one and may ask for a step
(``Placed.notify``).

``step`` applies an event, then *settles*: batches that have lingered or backed off are placed with
the leader of their partition, expired ones fail, metadata is requested, and each broker with ready
batches gets a request. Everything that takes time is a command; its answer comes back as an event
with the same number. An answer that is no longer expected changes nothing.

The parts: ``Accumulator`` collects records into batches and keeps the memory budget. ``Sender``
decides what goes to which broker. ``Sequences`` (in ``Partition``) keep batches in order and free
of duplicates. ``Answers`` handles the results of requests. ``Topics`` knows how many partitions a
topic has and which one a record goes to. A ``ProducerIdentity`` supplies the producer id and the
state of the transaction: ``Idempotence``, or ``Transactions`` for a producer with a transactional
id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kip848_client.core.backoff import Jitter
from kip848_client.core.cluster import (
    ClusterChanged,
    ClusterEvent,
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    MetadataQuestions,
    MetadataSettings,
)
from kip848_client.core.outside import from_outside
from kip848_client.core.partition_names import shown
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._accumulator import Accumulator
from kip848_client.core.produce._answers import Answers
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._idempotence import Idempotence
from kip848_client.core.produce._interfaces import ProducerIdentity
from kip848_client.core.produce._model import (
    ALL_REPLICAS,
    NO_PRODUCER,
    Header,
    MakeBuilder,
    Placed,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.produce._routes import Choose, Route
from kip848_client.core.produce._sender import Sender
from kip848_client.core.produce._snapshot import PartitionSnapshot, ProducerSnapshot
from kip848_client.core.produce._topics import Topics
from kip848_client.core.produce._transaction import Transactions
from kip848_client.core.produce._transaction_states import State
from kip848_client.core.types import TopicPartition, Wait
from kip848_client.errors import ConfigError, DeliveryTimedOut, Kip848Error, LocalProtocolError

__all__ = ["ProducerCore"]

_PASSES_MAX: Final = 50
"""How often one step may settle. A few passes are enough; more means that two actions undo each
other."""

Event = ev.Event | ClusterEvent
Command = do.Command | LearnLeaders


class ProducerCore:
    """The producer as a pure state machine.

    ``jitter`` takes a pause in ms and returns it varied by up to 20 %; ``choose`` takes n and
    returns one of 0 .. n-1.
    """

    def __init__(
        self, settings: ProduceSettings, jitter: Jitter, choose: Choose, make_builder: MakeBuilder
    ) -> None:
        if settings.idempotent and settings.acks != ALL_REPLICAS:
            raise ConfigError(
                f"enable_idempotence needs acks='all', not acks={settings.acks}: a leader that "
                "does not wait for replicas may forget what it took; set enable_idempotence=False"
            )
        if settings.transactional_id is not None and not settings.idempotent:
            raise ConfigError("transactional_id needs enable_idempotence=True")
        jitter, choose = from_outside(jitter), from_outside(choose)
        make_builder = from_outside(make_builder)
        self._now = 0
        self._buffer_bytes: Final = settings.buffer_bytes
        self._out: list[Command] = []
        self._closing: ev.CloseRequested | None = None
        self._ends_soon = False
        self._closed = False
        self._stale_answers = 0
        self._judge_metadata = False
        self._flushes: dict[int, int] = {}
        """The newest batch that each flush waits for, by ticket."""
        self._leaders = Leaders()
        self._metadata = MetadataQuestions(_metadata_settings(settings), jitter)
        want = self._metadata.want
        self._accumulator = Accumulator(
            settings, make_builder, closed=self._batch_closed, used=self._topic_used
        )
        self._topics = Topics(
            settings,
            choose,
            self._leaders,
            self._metadata,
            self._emit,
            self._accumulator.waiting_at,
        )
        self._identity: ProducerIdentity
        if settings.transactional_id is None:
            self._identity = Idempotence(settings, jitter, self._emit, self)
            exhausted = self._identity.renew
        else:
            self._identity = Transactions(settings, jitter, self._emit, self)
            exhausted = None
        self._check = self._identity.check_append
        self._open = self._accumulator.open
        self._sender = Sender(settings, self._accumulator, self._leaders, want, exhausted)
        self._answers = Answers(
            settings,
            jitter,
            self._accumulator,
            self._sender,
            self._leaders,
            self._identity,
            self._emit,
            want,
            self._topics.missing,
        )

    # -- queries -----------------------------------------------------------------------------

    @property
    def transaction_state(self) -> State | None:
        """The state of the transactions; ``None`` without a transactional id."""
        identity = self._identity
        return identity.state if isinstance(identity, Transactions) else None

    @property
    def transaction_version(self) -> TransactionVersion:
        """The version of the open transaction."""
        return self._identity.version

    @property
    def who(self) -> ProducerId:
        """The current producer id and epoch; -1 and -1 if there is none."""
        return self._identity.who or NO_PRODUCER

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if no other event comes first; ``None`` for never."""
        if self._closed:
            return None
        due = (
            self._accumulator.due_ms(),
            self._sender.due_ms(self._now),
            self._metadata.due_ms(),
            self._topics.due_ms(),
            self._topics.gone_due_ms(self._now) if self._ends_soon else None,
            self._identity.due_ms(),
            None if self._closing is None else self._closing.deadline_ms,
        )
        return min((each for each in due if each is not None), default=None)

    def snapshot(self) -> ProducerSnapshot:
        """The whole state as an immutable snapshot."""
        partitions = {
            tp: PartitionSnapshot(
                waiting=len(each.waiting),
                open_records=0 if each.open is None else each.open.records,
                on_the_wire=len(each.flying),
                producer=each.sequences.producer,
                next_sequence=each.sequences.next_number,
                failures=each.failures,
                trouble=each.trouble,
            )
            for tp, each in self._accumulator.partitions.items()
        }
        return ProducerSnapshot(
            held_bytes=self._accumulator.held_bytes,
            unreported=self._accumulator.unreported,
            on_the_wire=self._sender.on_the_wire,
            partitions=partitions,
            topics={topic: len(each.partitions) for topic, each in self.routes.items()},
            stale_answers=self._stale_answers + self._identity.stale,
        )

    @property
    def is_busy(self) -> bool:
        """Whether anything may have to wait."""
        return bool(self._accumulator.unreported or self._topics.waits() or self._identity.waits())

    def waits(self) -> dict[str, Wait]:
        """What records and calls are waiting for now."""
        found = self._topics.waits() | self._identity.waits()
        for partition, since_ms in self._sender.leaderless.items():
            topic, number = partition.tp
            missing = self._topics.missing(topic)
            why = "Metadata: the partition has no leader" if missing is None else str(missing)
            found[f"the leader of partition {topic}-{number}"] = Wait(why, since_ms)
        for tp, each in self._accumulator.partitions.items():
            if each.trouble is not None and not each.is_idle:
                # the error is cleared by the first accepted batch; until then it is one wait
                wait = Wait(each.trouble, each.trouble_since_ms)
                found.setdefault(f"partition {tp[0]}-{tp[1]} to accept records", wait)
        return found

    @property
    def buffer_bytes(self) -> int:
        """The memory budget for records that are queued or in flight."""
        return self._buffer_bytes

    @property
    def held_bytes(self) -> int:
        """How much of the budget is in use."""
        return self._accumulator.held_bytes

    @property
    def on_the_wire(self) -> int:
        """How many Produce requests are not answered yet."""
        return self._sender.on_the_wire

    # -- appending, between steps ------------------------------------------------------------

    @property
    def routes(self) -> Mapping[str, Route]:
        """Where records go, for each topic whose partitions are known. If a topic is missing, post
        ``TopicWanted`` and wait."""
        return self._topics.routes

    def add(
        self,
        tp: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
    ) -> int | None:
        """Put a record into the open batch. Returns the number of the batch, or ``None`` if no
        batch is open or it is full; then call ``append``. Raises the errors of ``append``."""
        self._check()
        batch = self._open.get(tp)
        if batch is None or not batch.builder.append(timestamp_ms, key, value, headers):
            return None
        batch.records += 1
        return batch.number

    def append(
        self,
        now_ms: int,
        tp: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        route: Route | None = None,
    ) -> Placed | None:
        """Put a record into a batch, opening one if necessary. ``None`` means the memory budget is
        used up: post ``Appended``, wait for ``RoomMade``, and retry. ``route`` is given for a
        record without a fixed partition: if the batch of ``tp`` is full, the record goes to another
        partition.

        Raises ``RecordTooLarge``; ``LocalProtocolError`` if the state of the producer or of its
        transaction does not allow it; or the error with which the producer or transaction has
        failed.
        """
        number = self.add(tp, timestamp_ms, key, value, headers)
        moved = False
        while number is None and route is not None and self._accumulator.fill(tp):
            moved = True
            tp = route.of(None)
            number = self.add(tp, timestamp_ms, key, value, headers)
        if number is not None:
            return Placed(number, self._open[tp].records - 1, tp, notify=moved)
        return self._accumulator.begin(now_ms, tp, timestamp_ms, key, value, headers)

    def _batch_closed(self, tp: TopicPartition, size_bytes: int, full: bool) -> None:
        self._topics.closed(tp, size_bytes, full=full)

    def _topic_used(self, now_ms: int, topic: str) -> None:
        self._topics.use(now_ms, topic)

    # -- interface for transactions (Batches) ------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """No batch is queued, backing off or in flight."""
        return not self._accumulator.unreported and not self._sender.on_the_wire

    @property
    def is_in_flight(self) -> bool:
        """A batch is in flight and its answer is outstanding."""
        return self._sender.on_the_wire > 0

    @property
    def has_gap(self) -> bool:
        """A batch with sequence numbers has failed since ``begin_anew``."""
        return self._answers.has_gap

    @property
    def trouble(self) -> str | None:
        """Why a batch is not written yet, as reported by a broker or the network."""
        found = self._accumulator.partitions.items()
        told = (f"{shown(tp)}: {each.trouble}" for tp, each in found if each.trouble)
        return next(told, None)

    def flush_now(self) -> None:
        """Send queued batches without lingering."""
        self._accumulator.flush_now()

    def drop_unsent(self, error: Kip848Error) -> None:
        """Fail all batches that are not in flight now."""
        flying = self._sender.batches_on_the_wire()
        for batch in list(self._accumulator.everything()):
            if batch not in flying:
                self._answers.drop(batch, error)

    def begin_anew(self, producer: ProducerId) -> None:
        """Use this producer id and epoch from now on. Each partition adopts it at its next
        write."""
        del producer
        self._answers.has_gap = False

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event) -> tuple[Command, ...]:
        """Apply one event and return the commands, in order. Returns nothing after the ``Done`` of
        a ``CloseRequested``."""
        if self._closed:
            return ()
        self._now = max(self._now, now_ms)
        self._out = []
        self._sender.begin_step()
        self._take(event)
        self._settle()
        return tuple(self._out)

    def _emit(self, command: Command) -> None:
        self._out.append(command)

    def _take(self, event: Event) -> None:
        match event:
            case ev.Appended() | ev.TimerFired():
                pass  # settling finds what is due
            case ev.ProduceAnswered() | ev.ProduceLost():
                self._on_produce(event)
            case LeadersLearnt() | LeadersNotLearnt() | ClusterChanged():
                self._on_cluster(event)
            case ev.TopicWanted():
                if self._closing is None:
                    self._topics.want(self._now, event)
                else:
                    self._emit(do.Failed(event.ticket, _closed()))
            case ev.FlushRequested(ticket):
                self._flushes[ticket] = self._accumulator.newest
                self._accumulator.flush_now()
            case ev.WaitEnded(ticket):
                self._flushes.pop(ticket, None)
                self._topics.wait_ended(ticket)
                self._identity.wait_ended(ticket)
            case ev.EndsSoon():
                self._ends_soon = True
            case ev.CloseRequested():
                self._close(event)
            case _:
                known = self._identity.take(self._now, event)
                assert known, f"no such event: {event!r}"

    def _on_produce(self, event: ev.ProduceAnswered | ev.ProduceLost) -> None:
        produce = self._sender.ended(event.produce)
        if produce is None:
            self._stale_answers += 1
            return
        for batch in produce.batches:
            self._identity.batch_ended(batch.tp)
        if isinstance(event, ev.ProduceAnswered):
            self._answers.answered(self._now, produce, event.partitions)
        else:
            self._answers.lost(
                self._now, produce, event.why, event.fatal, maybe_sent=event.maybe_sent
            )

    def _on_cluster(self, event: ClusterEvent) -> None:
        match event:
            case LeadersLearnt():
                if event.number and self._metadata.answered(self._now, event.number) is None:
                    self._stale_answers += 1
                if event.nodes:
                    self._leaders.nodes = event.nodes
                for told in event.topics:
                    if self._topics.learn(self._now, told):
                        self._sender.place_topic(self._now, told.topic)
                self._sender.place_leaderless(self._now)
                self._topics.want_again()
                self._judge_metadata = True
            case LeadersNotLearnt():
                if self._metadata.lost(self._now, event.number):
                    self._topics.asked_in_vain(event.why)
                else:
                    self._stale_answers += 1
            case ClusterChanged():
                self._leaders.clear()
                self._metadata.begin_anew()
                self._topics.want_again()
                self._sender.place_all(self._now)

    # -- settling ----------------------------------------------------------------------------

    def _settle(self) -> None:
        now = self._now
        self._identity.settle(now)
        passes, before = 0, -1
        while before != len(self._out):
            for batch in list(self._accumulator.expired(now)):
                self._answers.expire(now, batch)
            for partition in self._accumulator.settle(now):
                self._sender.place(now, partition)
            self._sender.wake(now)
            for request in self._sender.send(now, self._identity):
                self._emit(request)
            before = len(self._out)
            self._identity.settle(now)  # batches to send may need a partition added first
            passes += 1
            assert passes < _PASSES_MAX, "the producer core does not settle"
        self._topics.settle(now, self._accumulator)
        if self._ends_soon:
            self._give_up_missing()
        if self._judge_metadata:
            self._judge_metadata = False
            self._metadata.judged()
        question = self._metadata.ask(now)
        if question is not None:
            self._emit(question)
        if self._accumulator.takes_room():
            self._emit(do.RoomMade())
        for ticket, barrier in tuple(self._flushes.items()):
            if self._accumulator.is_reported(barrier):
                del self._flushes[ticket]
                self._emit(do.Done(ticket))
        self._go_on_closing()

    # -- closing -----------------------------------------------------------------------------

    def _give_up_missing(self) -> None:
        """Stop waiting for topics that do not exist."""
        gone = self._topics.gone(self._now)
        if not gone:
            return
        self._topics.give_up(gone)
        flying = self._sender.batches_on_the_wire()
        for batch in list(self._accumulator.everything()):
            error = gone.get(batch.tp[0])
            if error is not None and batch not in flying:
                self._answers.give_up(self._now, batch, error)

    def _close(self, event: ev.CloseRequested) -> None:
        if self._closing is not None:
            self._flushes[event.ticket] = self._accumulator.newest
            if event.deadline_ms < self._closing.deadline_ms:
                self._closing = ev.CloseRequested(self._closing.ticket, event.deadline_ms)
            return
        self._closing = event
        self._ends_soon = True
        self._check = _refuse
        self._identity.close()
        self._topics.close(_closed())
        self._accumulator.flush_now()

    def _go_on_closing(self) -> None:
        closing = self._closing
        if closing is None:
            return
        if self._accumulator.unreported or not self._identity.is_at_rest:
            if self._now < closing.deadline_ms:
                return
            flying = self._sender.batches_on_the_wire()
            for batch in list(self._accumulator.everything()):
                doubt = batch.doubt or batch in flying
                self._answers.drop(batch, _closed_before(batch, maybe=doubt))
        self._identity.end()
        self._closed = True
        for ticket in (*self._flushes, closing.ticket):
            self._emit(do.Done(ticket))


def _metadata_settings(settings: ProduceSettings) -> MetadataSettings:
    return MetadataSettings(
        settings.metadata_max_age_ms, settings.retry_backoff_ms, settings.retry_backoff_max_ms
    )


def _closed() -> LocalProtocolError:
    return LocalProtocolError("the producer is closed; make a new one")


def _refuse() -> None:
    raise _closed()


def _closed_before(batch: Batch, *, maybe: bool) -> Kip848Error:
    outcome = "may or may not be" if maybe else "not"
    return DeliveryTimedOut(
        f"{batch.tp[0]}-{batch.tp[1]}: {batch.records} records {outcome} written: the producer was "
        "stopped before a broker acknowledged them; allow stop() more time by timeout_ms",
        maybe_written=maybe,
    )
