"""The user: reads at its own pace, pauses, seeks, looks offsets up, gives up waiting, is assigned
and unassigned, and hears of errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Final

from kip848_client.core.fetch import (
    EARLIEST,
    LATEST,
    AllButHeld,
    AssignmentChanged,
    Command,
    ErrorDelivered,
    OffsetsAsked,
    OffsetsFound,
    OffsetsNotFound,
    OffsetsWithdrawn,
    Paused,
    Resumed,
    SeekBegun,
    SeekEnded,
    Slice,
    Sought,
    Started,
    StoredOffset,
    TopicsLimited,
)
from kip848_client.core.types import TopicId, TopicPartition
from mock_coordinator.sim.fetching.brokers import Brokers
from mock_coordinator.sim.fetching.client import Client
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.fetching.reader import RecordReader

__all__ = ["User"]

_STALL_MS_MAX: Final = 20_000
_LISTENER_MS_MAX: Final = 2_000
_HOLD_MS_MAX: Final = 3_000
_LOOK_UP_MS: Final = 5_000


class User:
    """Everything that is the user's, and the group's that assigns it its partitions."""

    def __init__(self, context: FetchContext, brokers: Brokers) -> None:
        self._context = context
        self._brokers = brokers
        self._rng: Random = context.kernel.rng("user")
        self.client = Client(context, brokers, self._heard)
        rng = context.kernel.rng("reader")
        self._reader = RecordReader(self.client.core, self.client.feed, self, rng)
        self.assigned: dict[TopicPartition, TopicId] = {}
        """With the topic that had the name when it was assigned."""
        self._paused: set[TopicPartition] = set()
        self._held: set[TopicPartition] = set()
        self._unstarted: set[TopicPartition] = set()
        self._limit: frozenset[str] | None = None
        self._tickets = itertools.count(1)
        self._seeks: dict[int, tuple[TopicPartition, ...]] = {}
        self._seeking: dict[TopicPartition, int] = {}
        self._look_ups: dict[int, int] = {}
        """Open ones, and until when they must be answered."""
        self._acts: tuple[tuple[int, Callable[[], None]], ...] = (
            (4, self._pause),
            (4, self._resume),
            (4, self._seek),
            (3, self._begin_seek),
            (2, self._cancel_seek),
            (2, self._look_up),
            (5, self._assign),
            (2, self._assign_anew),
            (3, self._hold),
            (1, self._limit_topics),
            (3, self._commit),
            (1, self._begin_anew),
        )

    # -- polling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Be assigned something, and begin to poll."""
        self._assign()
        self._poll()

    def _poll(self) -> None:
        context, rng = self._context, self._rng
        only: tuple[TopicPartition, ...] = ()
        if not context.healed and rng.random() < 0.1 and self.assigned:
            only = tuple(rng.sample(sorted(self.assigned), 1))
        most = 500 if context.healed else rng.randint(1, context.options.records_max)
        damaged = self._reader.damaged
        self._reader.poll(most, only)
        if self._reader.damaged > damaged:
            context.probes.reached("damaged records")
        self._hear_of_trouble()
        pause_ms = rng.randint(0, 20 if context.healed else 2 * context.options.poll_pause_ms)
        if context.happens("user", context.options.stall):
            pause_ms = rng.randint(0, _STALL_MS_MAX)
        context.kernel.after(1 + pause_ms, self._poll)

    def record(self, taken: Slice, offset: int, value: bytes) -> None:
        """One is handed out; now and then the user does something in between two."""
        self._context.checks.record(taken, offset, value)
        if self._context.options.act_every_ms and self._context.happens("between", 0.01):
            self._context.probes.reached("an act between two records")
            self.act()

    def finished(self, taken: Slice) -> None:
        """All of a slice was read."""
        self._context.checks.finished(taken)

    def _hear_of_trouble(self) -> None:
        trouble = self.client.core.pending_error()
        if trouble is None:
            return
        tp, error = trouble
        self._context.tell("user", "trouble", f"{tp.topic}-{tp.partition} {error}")
        self._context.probes.reached("an error told")
        self.client.feed(ErrorDelivered(tp))
        if tp in self.assigned and self._rng.random() < 0.5:
            self._after_trouble(tp)

    def _after_trouble(self, tp: TopicPartition) -> None:
        """Seek to something that is there, or start over with the topic that has the name now."""
        topic = self._brokers.core.broker.catalog.topic(tp.topic)
        if topic is None or tp.partition >= topic.partitions:
            self._take_away({tp})
        elif topic.topic_id != self.assigned[tp]:
            self._change({tp: topic.topic_id}, fresh={tp})
        else:
            log = self._brokers.log(topic, tp.partition)
            self._sought(tp, self._rng.randint(log.log_start_offset, log.high_watermark))

    # -- acts --------------------------------------------------------------------------------

    def act(self) -> None:
        """Do one of the things that users do."""
        weights = [weight for weight, _ in self._acts]
        self._rng.choices(self._acts, weights)[0][1]()

    def _some(self) -> tuple[TopicPartition, ...]:
        known = sorted(self.assigned)
        return tuple(self._rng.sample(known, self._rng.randint(1, len(known)))) if known else ()

    def _shut(self, tp: TopicPartition, why: str, *, on: bool) -> None:
        self._context.checks.shut(tp, why, on=on)

    def _pause(self) -> None:
        some = self._some()
        for tp in some:
            self._paused.add(tp)
            self._shut(tp, "paused", on=True)
        self.client.feed(Paused(some))

    def _resume(self) -> None:
        some = self._some()  # some of them are not paused
        for tp in some:
            self._paused.discard(tp)
            self._shut(tp, "paused", on=False)
        self.client.feed(Resumed(some))

    def _seek(self) -> None:
        for tp in self._some()[:2]:
            topic = self._brokers.core.broker.catalog.topic(tp.topic)
            end = 3
            if topic is not None and tp.partition < topic.partitions:
                end = self._brokers.log(topic, tp.partition).high_watermark
            self._sought(tp, max(0, self._rng.randint(-2, end + 2)))

    def _sought(self, tp: TopicPartition, offset: int) -> None:
        self._seeking.pop(tp, None)
        self.client.feed(Sought(tp, offset))

    def _begin_seek(self) -> None:
        some = self._some()
        if not some:
            return
        ticket = next(self._tickets)
        self._seeks[ticket] = some
        self._seeking.update(dict.fromkeys(some, ticket))
        self.client.feed(SeekBegun(ticket, some))
        self._ask(ticket, some)

    def _cancel_seek(self) -> None:
        if self._seeks:
            ticket = self._rng.choice(sorted(self._seeks))
            self._context.probes.reached("a seek cancelled")
            del self._seeks[ticket]
            self.client.feed(SeekEnded(ticket, {}))

    def _look_up(self) -> None:
        some = self._some()
        if some:
            self._ask(next(self._tickets), some)

    def _ask(self, ticket: int, some: tuple[TopicPartition, ...]) -> None:
        now_ms = self._context.kernel.now_ms
        deadline_ms = now_ms + self._rng.randint(1, _LOOK_UP_MS)
        self._look_ups[ticket] = deadline_ms
        some_time = self._rng.randint(now_ms - 30_000, now_ms)
        times = {tp: self._rng.choice((EARLIEST, LATEST, some_time)) for tp in some}
        self.client.feed(OffsetsAsked(ticket, times, deadline_ms))
        if ticket % 8 == 0 and ticket not in self._seeks:
            wait_ms = self._rng.randint(1, _LOOK_UP_MS)
            self._context.kernel.after(wait_ms, lambda: self._withdraw(ticket))

    def _withdraw(self, ticket: int) -> None:
        if self._look_ups.pop(ticket, None) is not None:
            self._context.probes.reached("a look-up was withdrawn")
            self.client.feed(OffsetsWithdrawn(ticket))

    def _commit(self) -> None:
        for tp in self._some():
            self.client.commit(tp)

    def _begin_anew(self) -> None:
        self._context.probes.reached("the client began anew")
        self.client.begin_anew()

    def _limit_topics(self) -> None:
        names = sorted({tp.topic for tp in self.assigned})
        limit = None
        if names and self._rng.random() < 0.5 and not self._context.healed:
            limit = frozenset(self._rng.sample(names, self._rng.randint(0, len(names))))
        self._limit = limit
        self._limited()
        self.client.feed(TopicsLimited(limit))

    def _limited(self) -> None:
        for tp in self.assigned:
            self._shut(tp, "limited", on=self._limit is not None and tp.topic not in self._limit)

    # -- what the group does -----------------------------------------------------------------

    def _hold(self) -> None:
        """A revocation begins, and is called off after a while."""
        some = self._some()
        self._held |= set(some)
        for tp in some:
            self._shut(tp, "held", on=True)
        self._say_held()
        delay_ms = self._rng.randint(1, _HOLD_MS_MAX)
        self._context.kernel.after(delay_ms, lambda: self._release(some))

    def _release(self, some: tuple[TopicPartition, ...]) -> None:
        self._held -= set(some)
        for tp in some:
            self._shut(tp, "held", on=False)
        self._say_held()

    def _say_held(self) -> None:
        everything = frozenset(self.assigned)
        self.client.feed(AllButHeld(everything, everything - self._held))

    def _assign(self) -> None:
        """Something else is assigned from now on; a topic that was created again is another."""
        wanted: dict[TopicPartition, TopicId] = {}
        for topic in self._brokers.topics:
            for partition in range(topic.partitions):
                if self._context.healed or self._rng.random() < 0.8:
                    wanted[TopicPartition(topic.name, partition)] = topic.topic_id
        gone = self.assigned.keys() - wanted.keys()
        self._change(
            {tp: topic_id for tp, topic_id in wanted.items() if self._differs(tp, topic_id)},
            fresh=set(),
            gone=gone,
        )

    def _differs(self, tp: TopicPartition, topic_id: TopicId) -> bool:
        return self.assigned.get(tp) != topic_id

    def _assign_anew(self) -> None:
        """Partitions are taken and given back at once: that starts over."""
        some = {tp: self.assigned[tp] for tp in self._some()}
        self._change(some, fresh=set(some))

    def _take_away(self, gone: set[TopicPartition]) -> None:
        self._change({}, fresh=set(), gone=gone)

    def _change(
        self,
        changed: dict[TopicPartition, TopicId],
        *,
        fresh: set[TopicPartition],
        gone: frozenset[TopicPartition] | set[TopicPartition] = frozenset(),
    ) -> None:
        """``changed`` are assigned (again), ``gone`` are not any more."""
        fresh = fresh | set(changed)
        for tp in (*fresh, *gone):
            self._forget(tp)
        for tp in gone:
            self.assigned.pop(tp, None)
        self.assigned.update(changed)
        self._limited()
        has_group = self._context.options.has_group
        assignment = {tp: self.assigned[tp] if has_group else None for tp in sorted(self.assigned)}
        self._unstarted = (self._unstarted & self.assigned.keys()) | fresh
        for tp in fresh:
            self._shut(tp, "not started", on=True)
        self.client.feed(AssignmentChanged(assignment, frozenset(fresh)))
        if fresh:
            delay_ms = 1 if self._context.healed else self._rng.randint(0, _LISTENER_MS_MAX)
            ids = {tp: self.assigned[tp] for tp in fresh}
            self._context.kernel.after(delay_ms, lambda: self._started(ids))

    def _started(self, ids: dict[TopicPartition, TopicId]) -> None:
        """The listener is done with these."""
        done = tuple(tp for tp, i in sorted(ids.items()) if self.assigned.get(tp) == i)
        for tp in done:
            self._unstarted.discard(tp)
            self._shut(tp, "not started", on=False)
        self.client.feed(Started(done))

    def _forget(self, tp: TopicPartition) -> None:
        self._seeking.pop(tp, None)
        self._held.discard(tp)
        self._paused.discard(tp)
        for why in ("held", "paused", "limited", "not started"):
            self._shut(tp, why, on=False)

    # -- what is heard -----------------------------------------------------------------------

    def _heard(self, command: Command) -> None:
        match command:
            case OffsetsFound():
                self._answered(command.ticket)
                seek = self._seeks.pop(command.ticket, None)
                if seek is not None:
                    offsets = {
                        tp: StoredOffset(found.offset)
                        for tp, found in command.found.items()
                        if found.offset >= 0
                    }
                    self._end_seek(command.ticket, offsets)
            case OffsetsNotFound():
                self._context.probes.reached("a look-up failed")
                self._answered(command.ticket)
                if self._seeks.pop(command.ticket, None) is not None:
                    self._end_seek(command.ticket, {})
            case _:
                pass

    def _end_seek(self, ticket: int, offsets: dict[TopicPartition, StoredOffset]) -> None:
        self.client.feed(SeekEnded(ticket, offsets))

    def _answered(self, ticket: int) -> None:
        """Raises ``AssertionError`` for an answer to no open request, or that is too late."""
        deadline_ms = self._look_ups.pop(ticket)
        late_ms = self._context.kernel.now_ms - deadline_ms
        assert late_ms <= 1, f"look-up {ticket} is answered {late_ms} ms too late"

    def late_look_ups(self) -> list[int]:
        """Tickets that should have been answered."""
        now_ms = self._context.kernel.now_ms
        return [ticket for ticket, due_ms in self._look_ups.items() if due_ms < now_ms]

    # -- the end -----------------------------------------------------------------------------

    def heal(self) -> None:
        """Read everything of everything from now on."""
        self._limit = None
        self._limited()
        self.client.feed(TopicsLimited(None))
        everything = tuple(sorted(self.assigned))
        self._release(everything)
        self._paused.clear()
        for tp in everything:
            self._shut(tp, "paused", on=False)
        self.client.feed(Resumed(everything))
        self._assign()
