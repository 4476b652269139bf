"""Calls of the user's listener: one at a time, in order, and the steps around each.

Theory of operation
-------------------
The member requests partitions to be released or started; each request becomes at most one call, by
three rules:

- A partition is not revoked while the application is processing its records (Kafka's Java client
  achieves this by reconciling inside of poll), unless it is lost anyway.
- If the loss of everything has overtaken a request, the listener is called about the loss instead.
- Only partitions passed to ``on_partitions_assigned`` are passed on when they go.

The assignment that the user sees changes here: before the call about new partitions, and after the
call about released ones. Client-side assignors are called with a target in the same order, before
the listener is called about its partitions. A listener that replaced another one is called with no
new partitions when its turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kip848_client.core.group._commands import (
    AssignPartitions,
    AwaitApplication,
    CallAssignors,
    CallListener,
    ForgetPartitions,
    GroupCommand,
    ListenerMethod,
    StartFetching,
)
from kip848_client.core.group._events import ListenerReplaced
from kip848_client.core.member import (
    AssignedPartition,
    AssignorsHeard,
    Event,
    PartitionsReleased,
    PartitionsStarted,
    ReleasePartitions,
    StartPartitions,
)
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["ListenerCalls", "Numbers"]

Request = ReleasePartitions | StartPartitions | AssignorsHeard | ListenerReplaced


class Numbers:
    """Unique numbers for questions to the driver."""

    def __init__(self) -> None:
        self._last = 0

    @property
    def last(self) -> int:
        """The latest number, 0 before the first."""
        return self._last

    def next(self) -> int:
        """Return a new number."""
        self._last += 1
        return self._last


@dataclass(slots=True)
class _Running:
    request: Request
    waits_for_application: bool = False
    number: int = 0
    """The number of the open question to the driver."""


class ListenerCalls:
    """The queue of requests, and the part of the assignment that the listener knows."""

    def __init__(
        self,
        numbers: Numbers,
        emit: Callable[[GroupCommand], None],
        tell_member: Callable[[Event], None],
    ) -> None:
        self._numbers = numbers
        self._emit = emit
        self._tell_member = tell_member
        self._queue: deque[Request] = deque()
        self._running: _Running | None = None
        self._announced: set[TopicPartition] = set()
        """Partitions passed to ``on_partitions_assigned`` and not gone since."""
        self._ids: dict[TopicPartition, TopicId] = {}
        self._lost_plan = 0
        """The newest plan by which everything was lost; it overtakes older ones."""
        self._detached = False
        self._is_over = False
        """The membership has ended: do not wait for the application any more."""
        self._has_begun = False
        """The group has made an assignment, possibly empty, and the listener was called about
        it."""
        self._unheard = False
        """A listener that replaced another one failed in its first call."""

    @property
    def ids(self) -> Mapping[TopicPartition, TopicId]:
        """What the user sees as assigned by the group, with topic ids."""
        return self._ids

    @property
    def idle(self) -> bool:
        """Whether no call is open or queued."""
        return self._running is None and not self._queue

    @property
    def wants_poll(self) -> bool:
        """Whether a call must be repeated with the application's next poll."""
        return self._unheard

    def polled(self) -> None:
        """Handle a poll of the application."""
        if self._unheard:
            self._unheard = False
            self.request(ListenerReplaced())

    def attach(self) -> None:
        """Handle a subscription: the group's assignment is the user's (again)."""
        self._detached = self._is_over = False

    def detach(self) -> None:
        """See ``Detached``."""
        self._detached = True
        self._ids = {}

    def request(self, request: Request) -> None:
        """Queue a request of the member: release or start partitions, or pass a target to
        assignors."""
        if isinstance(request, ReleasePartitions) and request.lost:
            self._lost_plan = request.plan
        self._queue.append(request)
        running = self._running
        waits = running is not None and running.waits_for_application
        if waits and running is not None and self._is_overtaken(running.request):
            self._call_about_release(running)
        self._advance()

    def application_done(self, number: int) -> None:
        """Handle the application asking for more records."""
        running = self._running
        if running is not None and running.waits_for_application and running.number == number:
            self._call_about_release(running)
            self._advance()

    def returned(self, number: int, *, failed: bool) -> None:
        """Handle the end of a listener call."""
        running = self._running
        if running is None or running.waits_for_application or running.number != number:
            return
        self._finish(running.request, failed=failed)
        self._advance()

    def forget_everything(self) -> None:
        """Handle the end of the membership: nothing waits for open calls any more. If the time to
        leave ran out while the application held records, the listener is called now: as with Java's
        client, each partition it was given is taken back by one call."""
        self._is_over = True
        self._has_begun = False
        running = self._running
        if running is not None and running.waits_for_application:
            self._call_about_release(running)
        self._advance()
        announced = set(self._announced)
        self._forget(list(self._ids))
        self._announced = set() if self.idle else announced  # the queued calls are about these

    # -- inside ------------------------------------------------------------------------------

    def _is_overtaken(self, request: Request) -> bool:
        return (
            isinstance(request, ReleasePartitions | StartPartitions)
            and request.plan < self._lost_plan
        )

    def _advance(self) -> None:
        while self._running is None and self._queue:
            running = self._running = _Running(self._queue.popleft())
            match running.request:
                case StartPartitions() as request:
                    self._begin_start(running, request)
                case ReleasePartitions() as request:
                    self._begin_release(running, request)
                case AssignorsHeard() as heard:
                    running.number = self._numbers.next()
                    self._emit(CallAssignors(running.number, heard.member_epoch, heard.news))
                case ListenerReplaced() if self._has_begun and not self._detached:
                    self._call(running, ListenerMethod.ASSIGNED, ())
                case ListenerReplaced():
                    self._running = None

    def _begin_release(self, running: _Running, request: ReleasePartitions) -> None:
        over = request.lost or self._is_over or self._is_overtaken(request)
        if over or not request.partitions:
            self._call_about_release(running)
            return
        running.waits_for_application = True
        running.number = self._numbers.next()
        partitions = tuple(each.tp for each in request.partitions)
        self._emit(AwaitApplication(running.number, partitions))

    def _call_about_release(self, running: _Running) -> None:
        request = running.request
        assert isinstance(request, ReleasePartitions), "only releases are called about"
        running.waits_for_application = False
        named = tuple(each for each in request.partitions if each.tp in self._announced)
        if not named:
            self._finish(request, failed=False)
            return
        method = ListenerMethod.LOST if self._is_lost(request) else ListenerMethod.REVOKED
        self._call(running, method, named)

    def _is_lost(self, request: Request) -> bool:
        named_lost = isinstance(request, ReleasePartitions) and request.lost
        return named_lost or self._is_overtaken(request)

    def _begin_start(self, running: _Running, request: StartPartitions) -> None:
        if self._is_overtaken(request) or self._detached:
            self._finish(request, failed=False)
            return
        self._ids = {each.tp: each.topic_id for each in request.assignment}
        self._emit(AssignPartitions(request.assignment, request.partitions))
        self._announced.update(each.tp for each in request.partitions)
        self._call(running, ListenerMethod.ASSIGNED, request.partitions)

    def _call(
        self, running: _Running, method: ListenerMethod, named: tuple[AssignedPartition, ...]
    ) -> None:
        running.number = self._numbers.next()
        self._emit(CallListener(running.number, method, named))

    def _finish(self, request: Request, *, failed: bool) -> None:
        self._running = None
        if isinstance(request, StartPartitions):
            if not failed and not self._is_overtaken(request) and not self._detached:
                self._has_begun = True
                self._emit(StartFetching(request.assignment))
            self._tell_member(PartitionsStarted(request.plan, failed=failed))
            return
        if isinstance(request, ListenerReplaced):
            self._unheard = failed
        if isinstance(request, AssignorsHeard | ListenerReplaced):
            return
        if request.lost or request.last:
            self._has_begun = False
            self._forget(list(self._ids))
            self._announced.difference_update(each.tp for each in request.partitions)
        elif not failed or self._is_overtaken(request):
            self._forget([each.tp for each in request.partitions])
        self._tell_member(PartitionsReleased(request.plan, failed=failed))

    def _forget(self, partitions: Iterable[TopicPartition]) -> None:
        gone = {tp: None for tp in partitions if tp in self._ids}
        self._announced.difference_update(partitions)
        if gone:
            self._ids = {tp: each for tp, each in self._ids.items() if tp not in gone}
            self._emit(ForgetPartitions(tuple(gone)))
