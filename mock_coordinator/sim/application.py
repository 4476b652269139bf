"""The application of one process: it polls, works on records, and has a rebalance listener.

It does what applications do: it takes its time in the listener and in between polls, its listener
fails now and then, it pauses partitions, and sometimes it does not come back for longer than
``max.poll.interval.ms``. When its listener is called, and what it is given, is the group core's to
say; here is only what the user's side does then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final, Protocol

from kip848_client._types import TopicIdPartition, TopicPartition
from kip848_client.group import (
    ApplicationDone,
    AssignPartitions,
    AwaitApplication,
    CallListener,
    CommittedAsked,
    CommittedFailed,
    CommittedFound,
    Input,
    ListenerMethod,
    ListenerReturned,
)
from kip848_client.member import AssignedPartition, MemberState, Polled, PollEnded
from kip848_client.offsets import CommitAsked, CommitKind, CommittableOffset, OffsetTracker
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.invariants import MemberView
from mock_coordinator.sim.member_records import MemberRecords

__all__ = ["Application", "Host"]

HEALED_CALLBACK_MS: Final = 100
POLL_WAIT_MS_MAX: Final = 500
RECORDS_MAX: Final = 5
_HEALED_RECORDS_MAX: Final = 500
_HEALED_PAUSE_MS_MAX: Final = 200
_MANUAL_DEADLINE_MS: Final = 20_000
_LOOKUP_DEADLINE_MS: Final = 60_000


class Host(MemberView, Protocol):
    """What an application needs of the process that it is part of."""

    @property
    def context(self) -> SimContext:
        """The world."""
        ...

    @property
    def rng(self) -> Random:
        """The process's own dice."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether it is being closed."""
        ...

    def feed(self, event: Input) -> None:
        """Give the group core an event."""
        ...

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something inside of the process in ``delay_ms``."""
        ...

    def enter(self, action: Callable[[], None]) -> None:
        """Do something inside of the process, as soon as it runs."""
        ...


class Application:
    """Everything that is the user's in a process. ``tracker`` is the one that commits read,
    ``client`` the process's name in the network."""

    def __init__(
        self, host: Host, client: str, tracker: OffsetTracker, *, auto_commit: bool
    ) -> None:
        self._host = host
        self._tracker = tracker
        self._auto_commit = auto_commit
        self._assignment: dict[TopicIdPartition, AssignedPartition] = {}
        self._waits: list[AwaitApplication] = []
        self._poll_wanted_ms = 0
        self._tickets = 0
        self._lookups: dict[int, int] = {}
        """Open look-ups of committed offsets: the fetch core's numbers for them."""
        self.records = MemberRecords(
            host.context,
            client,
            host.rng,
            tracker,
            enter=host.enter,
            look_up=self._look_up,
            deliver=self._deliver,
        )
        self._user_paused: set[TopicIdPartition] = set()
        """What the user paused and has had ever since."""
        self._read_from: set[TopicPartition] = set()
        """What records were handed out of."""
        self.releasing = False
        """The revoked callback runs."""
        self.fetchable: dict[TopicIdPartition, TopicPartition] = {}
        """Of which records may be handed out."""

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What it was given and has not given back."""
        return frozenset(self._assignment)

    # -- what it is given --------------------------------------------------------------------

    def assigned(self, command: AssignPartitions) -> None:
        """The user sees this assignment from now on."""
        new = [each.tp for each in command.new]
        self._assignment = {(p.topic_id, p.partition): p for p in command.assignment}
        self._tracker.forget(new)
        self._read_from.difference_update(new)
        self._tracker.assign([each.tp for each in command.assignment])
        self.records.assigned(command.assignment, new)
        self._host.context.checkers.holding_changed(self._host)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone."""
        gone = set(partitions)
        self._tracker.forget(gone)
        self._read_from -= gone
        self._assignment = {k: each for k, each in self._assignment.items() if each.tp not in gone}
        self.records.forget(gone)
        self._user_paused &= self._assignment.keys()
        self._host.context.checkers.holding_changed(self._host)

    def fetch_only(self, fetchable: Iterable[AssignedPartition]) -> None:
        """What may be handed out from this moment on."""
        self.fetchable = {(p.topic_id, p.partition): p.tp for p in fetchable}
        self.records.fetch_only(self.fetchable.values())

    # -- the listener ------------------------------------------------------------------------

    def call_listener(self, command: CallListener) -> None:
        """It takes its time, and fails now and then."""
        host = self._host
        options, rng, healed = host.context.options, host.rng, host.context.healed
        longest_ms = min(HEALED_CALLBACK_MS, options.callback_ms_max) if healed else None
        duration_ms = rng.randint(0, options.callback_ms_max if longest_ms is None else longest_ms)
        failed = not healed and rng.random() < options.callback_failure
        if failed:
            host.context.probes.reached("callback failure")
        self.releasing = command.method is ListenerMethod.REVOKED
        if self.releasing and self._auto_commit:
            not_committed = self._not_committed(command.partitions)
            host.context.checkers.revoking(host.context.kernel.now_ms, host, not_committed)
        if command.method is ListenerMethod.ASSIGNED:
            new = {(p.topic_id, p.partition) for p in command.partitions}
            self._user_paused -= new
        host.after(duration_ms, lambda: self._returned(command, failed=failed))

    def _returned(self, command: CallListener, *, failed: bool) -> None:
        host = self._host
        self.releasing = False
        names = " ".join(f"{p.tp.topic}-{p.tp.partition}" for p in command.partitions)
        what = command.method.value.removeprefix("on_partitions_")
        host.context.tell(host.name, what, f"{names or '-'}{' FAILED' if failed else ''}")
        if command.method is ListenerMethod.ASSIGNED:
            outlasts = host.state is not MemberState.RECONCILING
        else:
            out_of_group = (MemberState.FENCED, MemberState.STALE, MemberState.JOINING)
            outlasts = command.method is ListenerMethod.REVOKED and host.state in out_of_group
        if outlasts:
            host.context.probes.reached("callback outlasts membership")
        host.feed(ListenerReturned(command.number, failed=failed))

    def _not_committed(
        self, partitions: Iterable[AssignedPartition]
    ) -> Mapping[TopicPartition, CommittableOffset]:
        """What the user is done with of these, and what is not known to be stored. A position that
        a reset chose is none of it: nothing was read, and it may come after the last commit."""
        done = self._tracker.dirty().items()
        read = {each.tp for each in partitions} & self._read_from
        return {tp: offset for tp, offset in done if tp in read}

    # -- positions ---------------------------------------------------------------------------

    def needs(self, tp: TopicPartition) -> bool:
        """Whether a partition is held and its position is not known."""
        return self._tracker.owns(tp) and self._tracker.position(tp) is None

    def _look_up(self, number: int, partitions: tuple[TopicPartition, ...]) -> None:
        """The fetch core wants to know what is committed."""
        self._tickets += 1
        self._lookups[self._tickets] = number
        deadline_ms = self._host.context.kernel.now_ms + _LOOKUP_DEADLINE_MS
        self._host.feed(CommittedAsked(self._tickets, partitions, deadline_ms))

    def found(self, command: CommittedFound | CommittedFailed) -> None:
        """A look-up ended."""
        number = self._lookups.pop(command.ticket)
        if isinstance(command, CommittedFound):
            self.records.found(number, command.found)
        else:
            self.records.not_found(number, command.error)

    # -- polling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to poll."""
        self._schedule_poll(self._host.rng.randint(0, 300))

    def hurry(self) -> None:
        """Poll now, whatever it is doing (the end of a stall)."""
        self._schedule_poll(0)

    def wait_for(self, command: AwaitApplication) -> None:
        """Say when it is done with its records of these partitions."""
        if set(command.partitions).isdisjoint(self._tracker.pending()):
            self._host.feed(ApplicationDone(command.number))
        else:
            self._waits.append(command)

    def _schedule_poll(self, delay_ms: int) -> None:
        """Only the newest plan to poll is carried out."""
        host = self._host
        due_ms = self._poll_wanted_ms = host.context.kernel.now_ms + delay_ms

        def poll() -> None:
            if self._poll_wanted_ms == due_ms:
                self._poll()

        host.after(delay_ms, poll)

    def _poll(self) -> None:
        host = self._host
        self._tracker.confirm()
        waits, self._waits = self._waits, []
        for each in waits:
            host.feed(ApplicationDone(each.number))
        if host.leaving or host.state is MemberState.FATAL:
            return
        self._poll_wanted_ms = -1
        host.feed(Polled(waiting=True))
        host.after(host.rng.randint(0, POLL_WAIT_MS_MAX), self._end_poll)

    def _end_poll(self) -> None:
        host = self._host
        options, rng = host.context.options, host.rng
        self._read()
        host.feed(PollEnded())
        if rng.random() < options.manual_commit and not host.leaving:
            self._commit_all()
        self._pause_and_resume()
        pause_ms = rng.randint(options.poll_pause_ms // 2, options.poll_pause_ms * 3 // 2)
        if not host.context.healed and rng.random() < options.stall:
            pause_ms = rng.randint(0, 2 * options.max_poll_interval_ms)
        if host.context.healed:  # a small buffer and a long pause are a long way to the end
            pause_ms = min(pause_ms, _HEALED_PAUSE_MS_MAX)
        self._schedule_poll(pause_ms)

    def _commit_all(self) -> None:
        """The user commits all positions."""
        self._tickets += 1
        deadline_ms = self._host.context.kernel.now_ms + _MANUAL_DEADLINE_MS
        offsets = self._tracker.snapshot()
        self._host.feed(CommitAsked(self._tickets, CommitKind.MANUAL, offsets, deadline_ms))

    def _pause_and_resume(self) -> None:
        """The user pauses a partition now and then, and resumes all of them."""
        host = self._host
        if self._user_paused and (host.context.healed or host.rng.random() < 0.2):
            self._user_paused.clear()
            self.records.resume(each.tp for each in self._assignment.values())
        elif self.fetchable and not host.context.healed and host.rng.random() < 0.05:
            partition = host.rng.choice(sorted(self.fetchable))
            self._user_paused.add(partition)
            self.records.pause(self.fetchable[partition])

    def _read(self) -> None:
        """Take records; there are more than it takes, or not."""
        healed = self._host.context.healed
        most = _HEALED_RECORDS_MAX if healed else RECORDS_MAX * max(1, len(self.fetchable))
        self.records.poll(self._host.rng.randint(0, most))

    def _deliver(self, partition: TopicIdPartition, tp: TopicPartition, offset: int) -> None:
        """A record is handed out."""
        host, checkers = self._host, self._host.context.checkers
        assert partition in self.fetchable, f"{tp} is handed out and not fetchable"
        checkers.not_paused(host, partition, self._user_paused)
        checkers.delivered(host, partition, tp.topic, offset, offset + 1)
        self._read_from.add(tp)
