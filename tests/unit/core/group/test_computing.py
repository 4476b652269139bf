"""The rounds of a member that was chosen to compute, in virtual time."""

from __future__ import annotations

from typing import TypeVar

import pytest

from kip848_client.core.assignor_rounds import ComputingSettings
from kip848_client.core.client_assignors import (
    ASSIGNOR_FAILED,
    AssignorFailed,
    CheckedAssignment,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    MemberRow,
    PreparedGroup,
)
from kip848_client.core.group import (
    AbandonComputation,
    AssignmentComputed,
    AssignmentImpossible,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
    ComputeAssignment,
    InstallAssignment,
    PrepareAssignment,
)
from kip848_client.core.group._computing import Computing
from kip848_client.core.group._listener_calls import Numbers
from kip848_client.core.member import Report
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, ConfigError, broker_error

T = TopicId(b"t" * 16)
C = TypeVar("C")
GROUP = PreparedGroup(
    7, "mine", {"a": GroupMember(3, ("t",)), "b": GroupMember(3, ("t",))}, {"t": GroupTopic(T, 2)}
)
GOOD = GroupAssignment({"a": MemberAssignment([TopicPartition("t", 0), TopicPartition("t", 1)])})
ROWS = (MemberRow("a", ((T, (0, 1)),), 0, b""),)
SETTINGS = ComputingSettings(60_000, 5_000, 2_000)


def refusal(code: ErrorCode) -> BrokerError:
    return broker_error(code, code.name, None)


class Harness:
    """A member at epoch 3 that has sent heartbeat 1; what its round asks for is in ``out``."""

    def __init__(self) -> None:
        self.now = 0
        self.out: list[object] = []
        self.suspected: list[str] = []
        self.computing = Computing(
            SETTINGS, Numbers(), lambda _: 100, self.out.append, self.suspected.append
        )
        self.computing.note_epoch(3)
        self.computing.heartbeat_sent(1)

    def hear(self, attempt: int = 1, *, should_compute: bool = True) -> None:
        self.computing.heard(self.now, attempt, should_compute=should_compute)

    def take(self, kind: type[C]) -> C:
        """The one thing that was asked for."""
        (found,) = self.out
        assert isinstance(found, kind)
        self.out.clear()
        return found

    def prepared(self, group: PreparedGroup = GROUP) -> ComputeAssignment:
        number = self.take(PrepareAssignment).number
        self.computing.answered(self.now, AssignmentPrepared(number, group))
        return self.take(ComputeAssignment)

    def computed(self, returned: object = GOOD) -> InstallAssignment:
        number = self.prepared().number
        self.computing.answered(self.now, AssignmentComputed(number, returned))
        return self.take(InstallAssignment)

    def fails(self) -> CheckedAssignment:
        """What is installed when the assignor fails."""
        number = self.prepared().number
        failure = AssignorFailed("assign() raised OSError: no")
        self.computing.answered(self.now, AssignmentComputed(number, failure=failure))
        report, install = self.out
        assert isinstance(report, Report)
        assert "no" in str(report.error)
        assert "group epoch 7" in str(report.error)
        assert isinstance(install, InstallAssignment)
        self.out.clear()
        self.computing.answered(
            self.now,
            AssignmentInstalled(install.number, refusal(ErrorCode.INVALID_ASSIGNMENT)),
        )
        return install.result

    def until(self, time_ms: int) -> None:
        while self.computing.due_ms is not None and self.computing.due_ms <= time_ms:
            self.now = self.computing.due_ms
            self.computing.go_on(self.now)
        self.now = time_ms


def test_a_round_prepares_computes_and_installs() -> None:
    member = Harness()
    member.hear(should_compute=False)
    assert not member.out
    member.hear()
    prepare = PrepareAssignment(1, 3, 2_000)
    assert member.out == [prepare]
    compute = member.prepared()
    assert compute == ComputeAssignment(2, GROUP, 5_000)
    member.computing.answered(0, AssignmentComputed(compute.number, GOOD))
    install = member.take(InstallAssignment)
    assert install == InstallAssignment(3, 3, 7, CheckedAssignment(ROWS), 2_000)
    member.computing.answered(0, AssignmentInstalled(install.number))
    assert not member.out
    assert member.computing.due_ms is None


def test_a_question_that_is_repeated_begins_no_second_round() -> None:
    member = Harness()
    member.hear()
    member.hear()
    member.computing.heartbeat_sent(2)
    member.prepared()  # heartbeat 2 has crossed it
    member.hear(2)
    assert not member.out


def test_a_question_that_comes_after_the_group_was_given_begins_anew() -> None:
    member = Harness()
    member.hear()
    old = member.prepared()
    member.computing.heartbeat_sent(2)
    member.hear(2)
    assert member.out.pop(0) == AbandonComputation(old.number)
    new = member.prepared()
    member.computing.answered(0, AssignmentComputed(old.number, GOOD))  # too late
    assert not member.out
    member.computing.answered(0, AssignmentComputed(new.number, GOOD))
    member.take(InstallAssignment)


@pytest.mark.parametrize("stage", ["prepare", "compute", "install"])
def test_out_of_the_group_the_round_is_over(stage: str) -> None:
    member = Harness()
    member.hear()
    answer: AssignmentPrepared | AssignmentComputed | AssignmentInstalled
    if stage == "prepare":
        answer = AssignmentPrepared(member.take(PrepareAssignment).number, GROUP)
    elif stage == "compute":
        answer = AssignmentComputed(member.prepared().number, GOOD)
    else:
        answer = AssignmentInstalled(member.computed().number, refusal(ErrorCode.INVALID_REQUEST))
    member.computing.note_epoch(None)
    if stage == "compute":
        member.take(AbandonComputation)
    member.computing.answered(0, answer)
    assert not member.out
    assert member.computing.due_ms is None


def test_what_is_not_answered_is_asked_again_after_a_pause() -> None:
    member = Harness()
    member.hear()
    member.computing.answered(0, AssignmentLost(member.take(PrepareAssignment).number, "gone"))
    assert member.suspected == ["gone"]
    member.until(99)
    assert not member.out
    member.until(100)
    install = member.computed()
    member.computing.answered(100, AssignmentLost(install.number, "gone again"))
    member.until(200)
    again = member.take(InstallAssignment)
    assert again.result == install.result
    # the first one had arrived: that is what the refusal means now
    member.computing.answered(
        200, AssignmentInstalled(again.number, refusal(ErrorCode.UNKNOWN_MEMBER_ID))
    )
    assert not member.out
    assert member.computing.due_ms is None


def test_a_coordinator_that_is_loading_is_asked_again() -> None:
    member = Harness()
    member.hear()
    number = member.take(PrepareAssignment).number
    loading = refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    member.computing.answered(0, AssignmentPrepared(number, refusal=loading))
    member.until(100)
    member.take(PrepareAssignment)


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH])
def test_an_install_with_another_epoch_waits_for_the_next_heartbeat(code: ErrorCode) -> None:
    member = Harness()
    member.hear()
    install = member.computed()
    stale = refusal(code)
    member.computing.answered(0, AssignmentInstalled(install.number, stale))
    member.until(10_000)
    assert not member.out
    member.computing.note_epoch(4)
    member.hear(2, should_compute=False)
    again = member.take(InstallAssignment)
    assert (again.member_epoch, again.group_epoch, again.result) == (4, 7, install.result)
    member.hear(3, should_compute=False)
    assert not member.out


@pytest.mark.parametrize("code", [ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH])
def test_a_prepare_with_another_epoch_waits_for_the_next_heartbeat(code: ErrorCode) -> None:
    member = Harness()
    member.hear()
    number = member.take(PrepareAssignment).number
    member.computing.answered(0, AssignmentPrepared(number, refusal=refusal(code)))
    member.until(10_000)
    assert not member.out
    member.computing.note_epoch(4)
    member.hear(2, should_compute=False)
    assert member.take(PrepareAssignment).member_epoch == 4


def test_a_member_that_is_fenced_by_its_next_heartbeat_does_not_ask_again() -> None:
    member = Harness()
    member.hear()
    install = member.computed()
    fenced = refusal(ErrorCode.FENCED_MEMBER_EPOCH)
    member.computing.answered(0, AssignmentInstalled(install.number, fenced))
    member.computing.note_epoch(None)
    assert not member.out
    assert member.computing.due_ms is None


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_knows_of_no_round(code: ErrorCode) -> None:
    member = Harness()
    member.hear()
    number = member.take(PrepareAssignment).number
    member.computing.answered(0, AssignmentPrepared(number, refusal=refusal(code)))
    assert member.suspected == [code.name]
    assert not member.out
    assert member.computing.due_ms is None


def test_what_cannot_help_is_reported_and_ends_the_round() -> None:
    member = Harness()
    member.hear()
    error = ConfigError("x")
    member.computing.answered(0, AssignmentImpossible(member.take(PrepareAssignment).number, error))
    assert member.take(Report).error is error
    member.hear()
    denied = refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    number = member.take(PrepareAssignment).number
    member.computing.answered(0, AssignmentPrepared(number, refusal=denied))
    assert member.take(Report).error is denied
    assert member.computing.due_ms is None


def test_a_round_has_the_rebalance_timeout() -> None:
    member = Harness()
    member.hear()
    compute = member.prepared()
    member.until(59_999)
    assert not member.out
    member.until(60_000)
    abandon, report = member.out
    assert abandon == AbandonComputation(compute.number)
    assert isinstance(report, Report)
    assert "max_poll_interval_ms" in str(report.error)
    member.out.clear()
    member.computing.answered(60_000, AssignmentComputed(compute.number, GOOD))
    assert not member.out


@pytest.mark.parametrize("stage", ["prepare", "compute", "stale"])
def test_what_is_answered_when_the_time_is_over_is_too_late(stage: str) -> None:
    member = Harness()
    member.hear()
    late = 60_000  # in a loop that was held up: the timer has not fired yet
    if stage == "prepare":
        number = member.take(PrepareAssignment).number
        member.computing.answered(late, AssignmentPrepared(number, GROUP))
    elif stage == "compute":
        member.computing.answered(late, AssignmentComputed(member.prepared().number, GOOD))
    else:
        number = member.take(PrepareAssignment).number
        stale = refusal(ErrorCode.STALE_MEMBER_EPOCH)
        member.computing.answered(0, AssignmentPrepared(number, refusal=stale))
        member.now = late
        member.hear(2, should_compute=False)
    assert isinstance(member.out[-1], Report)
    assert not [each for each in member.out if isinstance(each, ComputeAssignment)]
    assert not [each for each in member.out if isinstance(each, InstallAssignment)]
    assert member.computing.due_ms is None


def test_an_assignor_gets_no_more_than_is_left() -> None:
    member = Harness()
    member.hear()
    member.now = 58_000
    assert member.prepared().timeout_ms == 2_000


def test_who_fails_lets_another_member_compute_and_then_says_it_is_an_error() -> None:
    member = Harness()
    member.hear()
    assert member.fails() == CheckedAssignment()
    assert not member.out  # the refusal was what we wanted
    member.hear()
    assert member.fails() == CheckedAssignment(error=ASSIGNOR_FAILED)


def test_another_group_epoch_is_another_chance() -> None:
    member = Harness()
    member.hear()
    member.fails()
    member.hear()
    number = member.prepared(PreparedGroup(8, "mine", GROUP.members, GROUP.topics)).number
    member.computing.answered(0, AssignmentComputed(number, None))
    report, install = member.out
    assert isinstance(report, Report)
    assert isinstance(install, InstallAssignment)
    assert install.result == CheckedAssignment()


def test_what_the_coordinator_refuses_twice_is_an_error() -> None:
    member = Harness()
    for _ in range(2):
        member.hear()
        install = member.computed()
        assert install.result == CheckedAssignment(ROWS)
        invalid = refusal(ErrorCode.INVALID_ASSIGNMENT)
        member.computing.answered(0, AssignmentInstalled(install.number, invalid))
        assert member.take(Report).error is invalid
    member.hear()
    assert member.computed().result == CheckedAssignment(error=ASSIGNOR_FAILED)


def test_an_error_of_the_assignors_own_is_installed_as_it_is() -> None:
    member = Harness()
    member.hear()
    own = 5
    install = member.computed(GroupAssignment(error=own))
    assert install.result == CheckedAssignment(error=own)
