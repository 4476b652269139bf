"""Computing the assignment of the whole group, when the coordinator has chosen this member.

Theory of operation ------------------- The answer to a heartbeat requests a computation. One
*round* is Prepare (get the current group), running the assignor, and Install (send its result). A
round has the rebalance timeout, as at the coordinator, which skips a member that takes longer.
Later answers are dropped, by number.

*Repeated requests.* The coordinator repeats its request until it gets the Prepare. So a request in
the answer to a heartbeat that was sent before the group arrived is not new. A request in a later
answer means that the coordinator wants a new round.

*No answer.* Both requests may be repeated: a second Prepare replaces the first, and a second
Install of what is installed gets UNKNOWN_MEMBER_ID, which ends the round as success would. It never
means that the member is no longer in the group. After STALE_MEMBER_EPOCH (KIP-848) and
FENCED_MEMBER_EPOCH (the draft of Connect groups) the request is retried after the next heartbeat,
which also shows whether the member is still in the group.

*Failing assignors.* The assignor raised, took too long, or returned an invalid result. The kind of
group decides what is installed then (``Questions.failed``), with ``again`` for every failure after
the first one in the same group epoch.

The caller defines the types of groups and results: consumers share partitions, workers share
connectors and tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

from kip848_client.core.client_assignors import AssignorFailed
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error

__all__ = ["ComputingRounds", "ComputingSettings", "Prepared", "Questions"]

_OTHER_EPOCH: Final = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.FENCED_MEMBER_EPOCH)
_MOVED: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Prepared(Protocol):
    """The attributes of every prepared group."""

    @property
    def group_epoch(self) -> int:
        """The group epoch for which the assignment is computed."""
        ...

    @property
    def assignor(self) -> str:
        """The name of the chosen assignor, which all members offer."""
        ...


Group = TypeVar("Group", bound=Prepared)
Result = TypeVar("Result")
Group_contra = TypeVar("Group_contra", bound=Prepared, contravariant=True)


class Questions(Protocol[Group_contra, Result]):
    """The requests of a round, and the checks of results. Requests have numbers; each is answered
    once.
    """

    def prepare(self, number: int, member_epoch: int, timeout_ms: int) -> None:
        """Request the current group from the coordinator."""
        ...

    def compute(self, number: int, group: Group_contra, timeout_ms: int) -> None:
        """Run the assignor."""
        ...

    def abandon(self, number: int) -> None:
        """Drop that ``compute``: its result is no longer needed."""
        ...

    def install(
        self, number: int, member_epoch: int, group: Group_contra, result: Result, timeout_ms: int
    ) -> None:
        """Send the result to the coordinator."""
        ...

    def check(self, group: Group_contra, returned: object) -> Result:
        """Convert the assignor's return value to a result. Raises ``AssignorFailed`` if it is
        invalid.
        """
        ...

    def failed(self, *, again: bool) -> Result:
        """Return the result to install after a failure; ``again`` is true after the first failure
        for this group epoch.
        """
        ...

    def is_meant_to_be_refused(self, result: Result) -> bool:
        """Return whether ``failed`` created the result so that the coordinator chooses another
        member.
        """
        ...

    def report(self, error: Kip848Error) -> None:
        """Report an error to the user."""
        ...

    def suspect_coordinator(self, why: str, /) -> None:
        """A request showed that the coordinator moved or is unreachable."""
        ...


@dataclass(frozen=True, slots=True)
class ComputingSettings:
    """Times in milliseconds."""

    rebalance_timeout_ms: int = 300_000
    """The coordinator's limit for a round: the rebalance timeout of the heartbeats."""
    assignor_timeout_ms: int = 300_000
    """The limit for the assignor."""
    request_timeout_ms: int = 30_000
    """The limit for each request."""
    timeout_setting: str = "max_poll_interval_ms"
    """The setting that users raise for a longer rebalance timeout."""


class _Stage(Enum):
    PREPARE = "prepare"
    COMPUTE = "compute"
    INSTALL = "install"


@dataclass(slots=True)
class _Round(Generic[Group, Result]):
    until_ms: int
    stage: _Stage = _Stage.PREPARE
    number: int = 0
    """Of the open request, 0 for none."""
    failures: int = 0
    retry_ms: int | None = None
    """When to retry an unanswered request."""
    is_stale: bool = False
    """The coordinator has another member epoch: retry after the next heartbeat."""
    given: Group | None = None
    given_at: int = 0
    """The newest heartbeat sent before the group arrived."""
    result: Result | None = None


class ComputingRounds(Generic[Group, Result]):
    """The round of this member, if it has one. ``next_number`` numbers requests; ``backoff_ms``
    returns the pause after a number of consecutive failures.
    """

    def __init__(
        self,
        settings: ComputingSettings,
        next_number: Callable[[], int],
        backoff_ms: Callable[[int], int],
        questions: Questions[Group, Result],
    ) -> None:
        self._settings = settings
        self._next_number = next_number
        self._backoff_ms = backoff_ms
        self._questions = questions
        self._epoch: int | None = None
        self._newest_heartbeat = 0
        self._round: _Round[Group, Result] | None = None
        self._failed_epoch = -1
        self._failures = 0
        """The number of failures for the group epoch ``_failed_epoch``."""

    @property
    def due_ms(self) -> int | None:
        """When to call ``go_on`` next; ``None`` for never."""
        running = self._round
        if running is None:
            return None
        retry_ms = running.retry_ms
        return running.until_ms if retry_ms is None else min(retry_ms, running.until_ms)

    # -- what happens ------------------------------------------------------------------------

    def heartbeat_sent(self, attempt: int) -> None:
        """A heartbeat was sent."""
        self._newest_heartbeat = attempt

    def note_epoch(self, member_epoch: int | None) -> None:
        """The member epoch changed; ``None`` ends the membership, and therefore the round."""
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
        self._round = begun = _Round[Group, Result](now_ms + self._settings.rebalance_timeout_ms)
        self._ask(now_ms, begun)

    def go_on(self, now_ms: int) -> None:
        """Something is due."""
        self._expire(now_ms)
        running = self._round
        due_ms = None if running is None else running.retry_ms
        if running is not None and due_ms is not None and now_ms >= due_ms:
            self._ask(now_ms, running)

    def lost(self, now_ms: int, number: int, why: str) -> None:
        """A request got no answer; a retry may help."""
        running = self._answered(now_ms, number)
        if running is not None:
            self._questions.suspect_coordinator(why)
            self._again(now_ms, running)

    def impossible(self, now_ms: int, number: int, error: Kip848Error) -> None:
        """A request got no answer, and a retry cannot help."""
        if self._answered(now_ms, number) is not None:
            self._end()
            self._questions.report(error)

    def prepared(self, now_ms: int, number: int, group: Group) -> None:
        """The group arrived from the coordinator."""
        running = self._answered(now_ms, number)
        if running is not None:
            running.given, running.given_at = group, self._newest_heartbeat
            running.failures = 0
            self._compute(now_ms, running, group)

    def computed(
        self, now_ms: int, number: int, returned: object, failure: AssignorFailed | None
    ) -> None:
        """The assignor returned something, or failed."""
        running = self._answered(now_ms, number)
        if running is not None:
            self._on_computed(now_ms, running, returned, failure)

    def installed(self, now_ms: int, number: int) -> Result | None:
        """The coordinator accepted the result, which is returned; ``None`` for a late answer."""
        running = self._answered(now_ms, number)
        if running is None:
            return None
        self._end()
        return running.result

    def refused(self, now_ms: int, number: int, refusal: BrokerError) -> None:
        """The coordinator refused a request."""
        running = self._answered(now_ms, number)
        if running is not None:
            self._on_refused(now_ms, running, refusal)

    # -- inside ------------------------------------------------------------------------------

    def _answered(self, now_ms: int, number: int) -> _Round[Group, Result] | None:
        """Return the round that waits for this answer; ``None`` for a late answer."""
        self._expire(now_ms)
        running = self._round
        if running is None or running.number != number:
            return None
        running.number = 0
        return running

    def _expire(self, now_ms: int) -> None:
        running = self._round
        if running is not None and now_ms >= running.until_ms:
            self._end()
            too_late = _TOO_LATE.format(self._settings.timeout_setting)
            self._questions.report(AssignorFailed(too_late))

    def _compute(self, now_ms: int, running: _Round[Group, Result], group: Group) -> None:
        running.stage = _Stage.COMPUTE
        running.number = self._next_number()
        timeout_ms = min(self._settings.assignor_timeout_ms, running.until_ms - now_ms)
        self._questions.compute(running.number, group, timeout_ms)

    def _on_computed(
        self,
        now_ms: int,
        running: _Round[Group, Result],
        returned: object,
        failure: AssignorFailed | None,
    ) -> None:
        group = running.given
        assert group is not None, "computed what was not prepared"
        try:
            if failure is not None:
                raise failure
            running.result = self._questions.check(group, returned)
            if self._failures_of(group) > 1:  # the coordinator refused a checked result
                running.result = self._questions.failed(again=True)
        except AssignorFailed as err:
            failed = AssignorFailed(
                f"the assignor {group.assignor!r} failed for group epoch {group.group_epoch}: {err}"
            )
            failed.__cause__ = err.__cause__
            self._questions.report(failed)
            again = self._failures_of(group) > 0
            self._failures += 1
            running.result = self._questions.failed(again=again)
        running.stage = _Stage.INSTALL
        self._ask(now_ms, running)

    def _failures_of(self, group: Group) -> int:
        if self._failed_epoch != group.group_epoch:
            self._failed_epoch, self._failures = group.group_epoch, 0
        return self._failures

    def _ask(self, now_ms: int, running: _Round[Group, Result]) -> None:
        """Send the request of the stage, for the first time or again."""
        running.retry_ms = None
        if self._epoch is None:
            self._end()
            return
        running.number = number = self._next_number()
        timeout_ms = min(self._settings.request_timeout_ms, running.until_ms - now_ms)
        if running.stage is _Stage.PREPARE:
            self._questions.prepare(number, self._epoch, timeout_ms)
            return
        group, result = running.given, running.result
        assert group is not None, "installs what was not prepared"
        assert result is not None, "installs what was not computed"
        self._questions.install(number, self._epoch, group, result, timeout_ms)

    def _again(self, now_ms: int, running: _Round[Group, Result]) -> None:
        running.retry_ms = now_ms + self._backoff_ms(running.failures)
        running.failures += 1

    def _on_refused(
        self, now_ms: int, running: _Round[Group, Result], refusal: BrokerError
    ) -> None:
        code = refusal.code
        if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._again(now_ms, running)
        elif code in _OTHER_EPOCH:
            running.is_stale = True
        elif code in _MOVED:
            self._end()  # the new coordinator does not know the round, and chooses a member itself
            self._questions.suspect_coordinator(refusal.name)
        elif code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._end()  # another member was chosen, or the result is already installed
        else:
            self._end()
            is_invalid, result = code == ErrorCode.INVALID_ASSIGNMENT, running.result
            was_told = result is not None and self._questions.is_meant_to_be_refused(result)
            if not (is_invalid and was_told):
                self._failures += is_invalid
                self._questions.report(refusal)

    def _end(self) -> None:
        running, self._round = self._round, None
        if running is not None and running.stage is _Stage.COMPUTE and running.number:
            self._questions.abandon(running.number)


_TOO_LATE: Final = (
    "the assignment of the group was not installed within the rebalance timeout; the coordinator "
    "asks another member. Raise {} if the assignor needs longer"
)
