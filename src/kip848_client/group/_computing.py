"""Computing the assignment of the whole group, when the coordinator has chosen this member.

Theory of operation
-------------------
The answer to a heartbeat asks for it. Then it is Prepare (the group as it is), the assignor,
Install (its result): one *round*. A round has the rebalance timeout, as it has at the coordinator,
which passes a member over that takes longer; what comes after that is dropped, by number.

*Asked again.* The coordinator repeats its question until it has got the Prepare. So a question in
the answer to a heartbeat that was sent before the group was given to us says nothing new. One in a
later answer means that the coordinator wants the round from the beginning.

*No answer.* Both requests may be repeated: a second Prepare replaces the first, and a second
Install of what is installed gets UNKNOWN_MEMBER_ID, which ends the round as success would. It never
means that we are out of the group. STALE_MEMBER_EPOCH: again after the next heartbeat.

*An assignor that fails.* It raised, took too long, or returned what cannot be. Where it computes
for this group epoch for the first time, an assignment of nothing is installed: the coordinator
refuses it (unless there is nothing to assign), and another member computes. Where we are asked for
the same group epoch once more there was no other, or they failed, too: then the group is told that
it is an error. It keeps what it has until something changes, and every member hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kip848_client.client_assignors import (
    ASSIGNOR_FAILED,
    AssignorFailed,
    CheckedAssignment,
    PreparedGroup,
    checked_assignment,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error
from kip848_client.group._commands import (
    AbandonComputation,
    ComputeAssignment,
    InstallAssignment,
    PrepareAssignment,
)
from kip848_client.group._events import (
    AssignmentComputed,
    AssignmentImpossible,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
)
from kip848_client.group._listener_calls import Numbers
from kip848_client.member import Command, Report, Severity

__all__ = ["Computing", "ComputingSettings"]

Answer = (
    AssignmentPrepared
    | AssignmentComputed
    | AssignmentInstalled
    | AssignmentLost
    | AssignmentImpossible
)
Question = PrepareAssignment | ComputeAssignment | InstallAssignment | AbandonComputation

_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(frozen=True, slots=True)
class ComputingSettings:
    """Times in milliseconds."""

    rebalance_timeout_ms: int = 300_000
    """What the coordinator gives a round; the rebalance timeout of the heartbeats."""
    assignor_timeout_ms: int = 300_000
    """What an assignor gets of it."""
    request_timeout_ms: int = 30_000
    """What each request gets of it."""


class _Stage(Enum):
    PREPARE = "prepare"
    COMPUTE = "compute"
    INSTALL = "install"


@dataclass(slots=True)
class _Round:
    until_ms: int
    stage: _Stage = _Stage.PREPARE
    number: int = 0
    """Of the question that is open, 0 for none."""
    failures: int = 0
    retry_ms: int | None = None
    """When to ask again what was not answered."""
    is_stale: bool = False
    """The coordinator knows another member epoch of ours: ask again after the next heartbeat."""
    given: PreparedGroup | None = None
    given_at: int = 0
    """The newest heartbeat that was sent when the group was given to us."""
    result: CheckedAssignment | None = None


class Computing:
    """The round of this member, if it has one. ``suspect_coordinator``: a request showed that it
    moved, or cannot be reached. ``backoff_ms``: the pause after that many failures in a row."""

    def __init__(
        self,
        settings: ComputingSettings,
        numbers: Numbers,
        backoff_ms: Callable[[int], int],
        emit: Callable[[Question | Command], None],
        suspect_coordinator: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._numbers = numbers
        self._backoff_ms = backoff_ms
        self._emit = emit
        self._suspect = suspect_coordinator
        self._epoch: int | None = None
        self._newest_heartbeat = 0
        self._round: _Round | None = None
        self._failed_epoch = -1
        self._failures = 0
        """How often we failed for the group epoch ``_failed_epoch``."""

    @property
    def due_ms(self) -> int | None:
        """When ``go_on`` has something to do; ``None`` for never."""
        running = self._round
        if running is None:
            return None
        retry_ms = running.retry_ms
        return running.until_ms if retry_ms is None else min(retry_ms, running.until_ms)

    # -- what happens ------------------------------------------------------------------------

    def heartbeat_sent(self, attempt: int) -> None:
        """A heartbeat went out."""
        self._newest_heartbeat = attempt

    def note_epoch(self, member_epoch: int | None) -> None:
        """Our epoch changed; ``None`` when we are out of the group, and so out of the round."""
        self._epoch = member_epoch
        if member_epoch is None:
            self._end()
            self._failures = 0

    def heard(self, now_ms: int, attempt: int, *, should_compute: bool) -> None:
        """The answer to heartbeat ``attempt`` was accepted."""
        self._expire(now_ms)
        running = self._round
        if running is not None and running.is_stale:
            running.is_stale = False
            self._ask(now_ms, running)
        if not should_compute:
            return
        if running is not None:
            if running.given is None or attempt <= running.given_at:
                return
            self._end()
        self._round = begun = _Round(now_ms + self._settings.rebalance_timeout_ms)
        self._ask(now_ms, begun)

    def go_on(self, now_ms: int) -> None:
        """Something is due."""
        self._expire(now_ms)
        running = self._round
        due_ms = None if running is None else running.retry_ms
        if running is not None and due_ms is not None and now_ms >= due_ms:
            self._ask(now_ms, running)

    def answered(self, now_ms: int, answer: Answer) -> None:
        """The driver answered a question; one that is not open any more does not count."""
        self._expire(now_ms)
        running = self._round
        if running is None or running.number != answer.number:
            return
        running.number = 0
        match answer:
            case AssignmentLost():
                self._suspect(answer.why)
                self._again(now_ms, running)
            case AssignmentImpossible():
                self._end()
                self._report(answer.error)
            case AssignmentComputed():
                self._on_computed(now_ms, running, answer)
            case AssignmentPrepared(group=PreparedGroup() as group):
                running.given, running.given_at = group, self._newest_heartbeat
                running.failures = 0
                self._compute(now_ms, running, group)
            case AssignmentInstalled(refusal=None):
                self._end()
            case AssignmentPrepared() | AssignmentInstalled():
                if answer.refusal is not None:
                    self._on_refused(now_ms, running, answer.refusal)

    # -- inside ------------------------------------------------------------------------------

    def _expire(self, now_ms: int) -> None:
        running = self._round
        if running is not None and now_ms >= running.until_ms:
            self._end()
            self._report(AssignorFailed(_TOO_LATE))

    def _compute(self, now_ms: int, running: _Round, group: PreparedGroup) -> None:
        running.stage = _Stage.COMPUTE
        running.number = self._numbers.next()
        timeout_ms = min(self._settings.assignor_timeout_ms, running.until_ms - now_ms)
        self._emit(ComputeAssignment(running.number, group, timeout_ms))

    def _on_computed(self, now_ms: int, running: _Round, answer: AssignmentComputed) -> None:
        group = running.given
        assert group is not None, "computed what was not prepared"
        try:
            if answer.failure is not None:
                raise answer.failure
            running.result = checked_assignment(group, answer.returned)
            if self._failures_of(group) > 1:  # the coordinator refuses what looks right to us
                running.result = CheckedAssignment(error=ASSIGNOR_FAILED)
        except AssignorFailed as err:
            failed = AssignorFailed(
                f"the assignor {group.assignor!r} failed for group epoch {group.group_epoch}: {err}"
            )
            failed.__cause__ = err.__cause__
            self._report(failed)
            again = self._failures_of(group) > 0
            self._failures += 1
            running.result = CheckedAssignment(error=ASSIGNOR_FAILED if again else 0)
        running.stage = _Stage.INSTALL
        self._ask(now_ms, running)

    def _failures_of(self, group: PreparedGroup) -> int:
        if self._failed_epoch != group.group_epoch:
            self._failed_epoch, self._failures = group.group_epoch, 0
        return self._failures

    def _ask(self, now_ms: int, running: _Round) -> None:
        """Send the request of the stage, for the first time or again."""
        running.retry_ms = None
        if self._epoch is None:
            self._end()
            return
        running.number = number = self._numbers.next()
        timeout_ms = min(self._settings.request_timeout_ms, running.until_ms - now_ms)
        if running.stage is _Stage.PREPARE:
            self._emit(PrepareAssignment(number, self._epoch, timeout_ms))
            return
        group, result = running.given, running.result
        assert group is not None, "installs what was not prepared"
        assert result is not None, "installs what was not computed"
        self._emit(InstallAssignment(number, self._epoch, group.group_epoch, result, timeout_ms))

    def _again(self, now_ms: int, running: _Round) -> None:
        running.retry_ms = now_ms + self._backoff_ms(running.failures)
        running.failures += 1

    def _on_refused(self, now_ms: int, running: _Round, refusal: BrokerError) -> None:
        code = refusal.code
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._again(now_ms, running)
        elif code == ErrorCode.STALE_MEMBER_EPOCH:
            running.is_stale = True
        elif code in _MOVED:
            self._end()  # the new one knows nothing of the round, and asks somebody
            self._suspect(refusal.name)
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._end()  # somebody else was chosen, or it was installed before
        else:
            self._end()
            is_invalid = code == ErrorCode.INVALID_ASSIGNMENT
            if not (is_invalid and running.result == CheckedAssignment()):  # which was told before
                self._failures += is_invalid
                self._report(refusal)

    def _end(self) -> None:
        running, self._round = self._round, None
        if running is not None and running.stage is _Stage.COMPUTE and running.number:
            self._emit(AbandonComputation(running.number))

    def _report(self, error: Kip848Error) -> None:
        self._emit(Report(error, Severity.NOTICE))


_TOO_LATE: Final = (
    "the assignment of the group was not installed within the rebalance timeout; the coordinator "
    "asks another member. Raise max_poll_interval_ms if the assignor needs longer"
)
