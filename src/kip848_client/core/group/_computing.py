"""Computing the assignment of a group of consumers (rounds:
``kip848_client.core.assignor_rounds``).

If an assignor fails for a group epoch for the first time, an empty assignment is installed: the
coordinator refuses it (unless there is nothing to assign), and another member computes. If this
member is asked again for the same group epoch, there was no other member, or they failed, too: then
the error is reported to the group. It keeps its assignment until something changes, and every
member is notified.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.assignor_rounds import ComputingRounds, ComputingSettings
from kip848_client.core.client_assignors import (
    ASSIGNOR_FAILED,
    CheckedAssignment,
    PreparedGroup,
    checked_assignment,
)
from kip848_client.core.group._commands import (
    AbandonComputation,
    ComputeAssignment,
    InstallAssignment,
    PrepareAssignment,
)
from kip848_client.core.group._events import (
    AssignmentComputed,
    AssignmentImpossible,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
)
from kip848_client.core.group._listener_calls import Numbers
from kip848_client.core.member import Command, Report, Severity
from kip848_client.errors import Kip848Error

__all__ = ["Computing"]

Answer = (
    AssignmentPrepared
    | AssignmentComputed
    | AssignmentInstalled
    | AssignmentLost
    | AssignmentImpossible
)
Question = PrepareAssignment | ComputeAssignment | InstallAssignment | AbandonComputation


class _Questions:
    """The questions of a round, as commands."""

    def __init__(
        self, emit: Callable[[Question | Command], None], suspect: Callable[[str], None]
    ) -> None:
        self._emit = emit
        self.suspect_coordinator = suspect

    def prepare(self, number: int, member_epoch: int, timeout_ms: int) -> None:
        self._emit(PrepareAssignment(number, member_epoch, timeout_ms))

    def compute(self, number: int, group: PreparedGroup, timeout_ms: int) -> None:
        self._emit(ComputeAssignment(number, group, timeout_ms))

    def abandon(self, number: int) -> None:
        self._emit(AbandonComputation(number))

    def install(
        self,
        number: int,
        member_epoch: int,
        group: PreparedGroup,
        result: CheckedAssignment,
        timeout_ms: int,
    ) -> None:
        epoch = group.group_epoch
        self._emit(InstallAssignment(number, member_epoch, epoch, result, timeout_ms))

    def check(self, group: PreparedGroup, returned: object) -> CheckedAssignment:
        return checked_assignment(group, returned)

    def failed(self, *, again: bool) -> CheckedAssignment:
        return CheckedAssignment(error=ASSIGNOR_FAILED if again else 0)

    def is_meant_to_be_refused(self, result: CheckedAssignment) -> bool:
        return result == CheckedAssignment()

    def report(self, error: Kip848Error) -> None:
        self._emit(Report(error, Severity.NOTICE))


class Computing(ComputingRounds[PreparedGroup, CheckedAssignment]):
    """The round of this consumer, if it has one. ``suspect_coordinator``: called when a request
    shows that the coordinator moved, or cannot be reached. ``backoff_ms`` maps a number of failures
    in a row to a pause."""

    def __init__(
        self,
        settings: ComputingSettings,
        numbers: Numbers,
        backoff_ms: Callable[[int], int],
        emit: Callable[[Question | Command], None],
        suspect_coordinator: Callable[[str], None],
    ) -> None:
        super().__init__(settings, numbers.next, backoff_ms, _Questions(emit, suspect_coordinator))

    def answered(self, now_ms: int, answer: Answer) -> None:
        """Process a driver's answer; ignored if its question is no longer open."""
        match answer:
            case AssignmentLost():
                self.lost(now_ms, answer.number, answer.why)
            case AssignmentImpossible():
                self.impossible(now_ms, answer.number, answer.error)
            case AssignmentComputed():
                self.computed(now_ms, answer.number, answer.returned, answer.failure)
            case AssignmentPrepared(group=PreparedGroup() as group):
                self.prepared(now_ms, answer.number, group)
            case AssignmentInstalled(refusal=None):
                self.installed(now_ms, answer.number)
            case AssignmentPrepared() | AssignmentInstalled():
                if answer.refusal is not None:
                    self.refused(now_ms, answer.number, answer.refusal)
