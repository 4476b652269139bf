"""The application of one process: it polls, works on records, and has a rebalance listener.

It does what applications do: it takes its time in the listener and in between polls, its listener
fails now and then, it pauses partitions, and sometimes it does not come back for longer than
``max.poll.interval.ms``. When its listener is called, and what it is given, is the group core's to
say; here is only what the user's side does then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from kip848_client.core.group import (
    AssignPartitions,
    CallListener,
    ListenerMethod,
    ListenerReturned,
)
from kip848_client.core.member import AssignedPartition, MemberState, Polled, PollEnded
from kip848_client.core.offsets import CommitAsked, CommitKind, CommittableOffset, OffsetTracker
from kip848_client.core.types import TopicIdPartition, TopicPartition
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.group_requests import Sender
from mock_coordinator.sim.held_partitions import HeldPartitions
from mock_coordinator.sim.node_requests import Wires

__all__ = ["Application", "Host"]

HEALED_CALLBACK_MS: Final = 100
POLL_WAIT_MS_MAX: Final = 500
RECORDS_MAX: Final = 5
_HEALED_RECORDS_MAX: Final = 500
_HEALED_PAUSE_MS_MAX: Final = 200
_MANUAL_DEADLINE_MS: Final = 20_000


class Host(Sender, Protocol):
    """What an application needs of the process that it is part of."""

    @property
    def context(self) -> SimContext:
        """The world."""
        ...

    @property
    def leaving(self) -> bool:
        """Whether it is being closed."""
        ...


class Application(HeldPartitions):
    """Everything that is the user's in a process."""

    def __init__(
        self, host: Host, wires: Wires, tracker: OffsetTracker, *, auto_commit: bool
    ) -> None:
        super().__init__(host, wires, tracker)
        self._host = host
        self._auto_commit = auto_commit
        self._poll_wanted_ms = 0
        self._user_paused: set[TopicIdPartition] = set()
        """What the user paused and has had ever since."""
        self._read_from: set[TopicPartition] = set()
        """What records were handed out of."""
        self.releasing = False
        """The revoked callback runs."""

    # -- what it is given --------------------------------------------------------------------

    def assigned(self, command: AssignPartitions) -> None:
        """The user sees this assignment from now on."""
        self._read_from.difference_update(each.tp for each in command.new)
        super().assigned(command)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone."""
        gone = set(partitions)
        self._read_from -= gone
        super().forget(gone)
        self._user_paused &= self._assignment.keys()

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
        done = self.tracker.dirty().items()
        read = {each.tp for each in partitions} & self._read_from
        return {tp: offset for tp, offset in done if tp in read}

    # -- polling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to poll."""
        self._schedule_poll(self._host.rng.randint(0, 300))

    def hurry(self) -> None:
        """Poll now, whatever it is doing (the end of a stall)."""
        self._schedule_poll(0)

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
        self.came_back()
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
        self.tickets += 1
        deadline_ms = self._host.context.kernel.now_ms + _MANUAL_DEADLINE_MS
        offsets = self.tracker.snapshot()
        self._host.feed(CommitAsked(self.tickets, CommitKind.MANUAL, offsets, deadline_ms))

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

    def deliver(
        self, partition: TopicIdPartition, tp: TopicPartition, offset: int, value: bytes
    ) -> None:
        """A record is handed out."""
        self._host.context.checkers.not_paused(self._host, partition, self._user_paused)
        super().deliver(partition, tp, offset, value)
        self._read_from.add(tp)
