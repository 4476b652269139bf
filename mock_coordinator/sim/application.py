"""The application of one process: it polls, works on records, and has rebalance callbacks.

It does what applications do: it takes its time in callbacks and in between polls, its callbacks
fail now and then, and sometimes it does not come back for longer than ``max.poll.interval.ms``.
Callbacks run one at a time in the order in which they were asked for, beside the polling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kip848_client._types import TopicIdPartition, TopicPartition
from kip848_client.member import (
    AssignedPartition,
    MemberState,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    PollEnded,
    ReleasePartitions,
    StartPartitions,
)

if TYPE_CHECKING:
    from mock_coordinator.sim.process import MemberProcess

__all__ = ["Application"]

HEALED_CALLBACK_MS: Final = 100
POLL_WAIT_MS_MAX: Final = 500
RECORDS_MAX: Final = 5


class Application:
    """Everything that is the user's in a process."""

    def __init__(self, process: MemberProcess) -> None:
        self._process = process
        self._queue: deque[ReleasePartitions | StartPartitions] = deque()
        self._running: ReleasePartitions | StartPartitions | None = None
        self._assignment: dict[TopicIdPartition, AssignedPartition] = {}
        self._surrendered = False
        self._poll_wanted_ms = 0
        self.fetchable: dict[TopicIdPartition, TopicPartition] = {}
        """Of which records may be handed out."""

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What it was given and has not given back. After a leave that did not wait for a callback
        nothing: the user was asked, took too long, and the partitions are out of reach anyway."""
        return frozenset() if self._surrendered else frozenset(self._assignment)

    @property
    def idle(self) -> bool:
        """No callback runs or waits."""
        return self._running is None and not self._queue

    @property
    def releasing(self) -> bool:
        """The revoked callback runs."""
        return isinstance(self._running, ReleasePartitions) and not self._running.lost

    def surrender(self) -> None:
        """The membership has ended; what callbacks still have in hand is not owned any more."""
        if not self.idle:
            self._surrendered = True
            self._process.scene.watch.holding_changed(self._process)

    def sync(self, fetchable: Iterable[AssignedPartition]) -> None:
        """What may be handed out from this moment on."""
        now = {(p.topic_id, p.partition): p.tp for p in fetchable}
        added = [tp for partition, tp in now.items() if partition not in self.fetchable]
        self.fetchable = now
        if added:
            self._process.committing.tracker.assign(added)

    # -- callbacks ---------------------------------------------------------------------------

    def call_back(self, command: ReleasePartitions | StartPartitions) -> None:
        """Run a callback when those before it are done."""
        self._queue.append(command)
        self._next()

    def _next(self) -> None:
        if self._running is not None or not self._queue:
            return
        process = self._process
        command = self._running = self._queue.popleft()
        is_call = isinstance(command, StartPartitions) or bool(command.partitions)
        if isinstance(command, StartPartitions):
            self._give(command)
        options, rng, healed = process.scene.options, process.rng, process.scene.healed
        longest = min(HEALED_CALLBACK_MS, options.callback_ms_max) if healed else None
        duration_ms = rng.randint(0, options.callback_ms_max if longest is None else longest)
        fails = is_call and not healed and rng.random() < options.callback_failure
        if not is_call:
            duration_ms = 0
        if fails:
            process.scene.probes.reached("callback failure")
        process.after(duration_ms, lambda: self._returned(command, failed=fails))

    def _give(self, command: StartPartitions) -> None:
        self._assignment = {(p.topic_id, p.partition): p for p in command.assignment}
        self._process.committing.name(command.assignment)
        self._process.scene.watch.holding_changed(self._process)

    def _returned(self, command: ReleasePartitions | StartPartitions, *, failed: bool) -> None:
        process = self._process
        self._running = None
        self._tell(command, failed=failed)
        event: PartitionsStarted | PartitionsReleased
        if isinstance(command, StartPartitions):
            event = PartitionsStarted(command.plan, failed)
            outlasts = process.state is not MemberState.RECONCILING
        else:
            kept = failed and not command.last
            if not kept:
                self._take(command)
            event = PartitionsReleased(command.plan, kept)
            outlasts = not command.lost and process.state in (
                MemberState.FENCED,
                MemberState.STALE,
                MemberState.JOINING,
            )
        if outlasts:
            process.scene.probes.reached("callback outlasts membership")
        process.feed(event)
        self._next()
        if self.idle:
            self._surrendered = False

    def _take(self, command: ReleasePartitions) -> None:
        gone = [(p.topic_id, p.partition) for p in command.partitions]
        if command.last:
            gone = list(self._assignment)
        for partition in gone:
            assigned = self._assignment.pop(partition, None)
            if assigned is not None:
                self._process.committing.tracker.forget([assigned.tp])
        self._process.scene.watch.holding_changed(self._process)

    def _tell(self, command: ReleasePartitions | StartPartitions, *, failed: bool) -> None:
        names = " ".join(f"{p.topic}-{p.partition}" for p in command.partitions)
        if isinstance(command, StartPartitions):
            what = "assigned"
        else:
            what = "lost" if command.lost else "revoked"
        suffix = " FAILED" if failed else ""
        self._process.scene.tell(self._process.name, what, f"{names or '-'}{suffix}")

    # -- polling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to poll."""
        self._schedule_poll(self._process.rng.randint(0, 300))

    def hurry(self) -> None:
        """Poll now, whatever it is doing (the end of a stall)."""
        self._schedule_poll(0)

    def _schedule_poll(self, delay_ms: int) -> None:
        """Only the newest plan to poll is carried out."""
        process = self._process
        due_ms = self._poll_wanted_ms = process.scene.kernel.now_ms + delay_ms

        def poll() -> None:
            if self._poll_wanted_ms == due_ms:
                self._poll()

        process.after(delay_ms, poll)

    def _poll(self) -> None:
        process = self._process
        if process.leaving or process.state is MemberState.FATAL:
            return
        process.committing.tracker.confirm()
        self._poll_wanted_ms = -1
        process.feed(Polled(waiting=True))
        process.after(process.rng.randint(0, POLL_WAIT_MS_MAX), self._end_poll)

    def _end_poll(self) -> None:
        process = self._process
        options, rng = process.scene.options, process.rng
        self._deliver()
        process.feed(PollEnded())
        if rng.random() < options.manual_commit and not process.leaving:
            process.committing.commit_all()
        pause_ms = rng.randint(options.poll_pause_ms // 2, options.poll_pause_ms * 3 // 2)
        if not process.scene.healed and rng.random() < options.stall:
            pause_ms = rng.randint(0, 2 * options.max_poll_interval_ms)
        self._schedule_poll(pause_ms)

    def _deliver(self) -> None:
        """Hand out records; each partition has as many as anybody could want."""
        process = self._process
        tracker, watch = process.committing.tracker, process.scene.watch
        for partition, tp in self.fetchable.items():
            position = tracker.position(tp)
            count = process.rng.randint(0, RECORDS_MAX)
            if position is None or count == 0:
                continue
            assert tracker.delivered(tp, position + count), f"{tp} is fetchable and not tracked"
            watch.delivered(process, partition, tp.topic, position, position + count)
