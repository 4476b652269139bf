"""Rounds: which member computes a group's target, and how far it is.

Theory of operation
===================

A group whose epoch is ahead of its assignment epoch, and whose members can compute, has one *round*
at a time. ``settle`` starts it (for the first target only after other members had time to join:
``gathering``): it selects an assignor and a member. The member is notified in its next heartbeat
response (``flag``), and again in each one until it requests the group's state (``prepare``). It has
its own rebalance timeout from the first notice to the result (``install``); a member that takes
longer, or returns nonsense, is skipped for this group epoch while another member can do it. It is
not fenced: that is what its session is for.

A result is installed even if the group epoch has moved meanwhile, so that a group that changes all
the time makes progress; ``settle`` then starts the next round at once.

No record has this state. After a fail-over the new coordinator starts the round again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar

from kip848_client.core.types import STATIC_LEAVE_EPOCH
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.client_assignors.computation import (
    Computation,
    FromChosenMember,
    ResultOfChosenMember,
)
from mock_coordinator.core.groups.client_assignors.gathering import Gathering
from mock_coordinator.core.groups.client_assignors.install import refused
from mock_coordinator.core.groups.client_assignors.prepare import offers_of
from mock_coordinator.core.groups.client_assignors.selection import Choice, choose
from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.errors import group_id_not_found
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = ["Phase", "Round", "Rounds"]

G = TypeVar("G", bound=ReconciledGroup)
P = TypeVar("P")
R = TypeVar("R", bound=ResultOfChosenMember)


class Phase(StrEnum):
    """How far a round is."""

    CHOSEN = "chosen"
    """The member does not know yet."""
    NOTIFIED = "notified"
    """It was chosen, and has not asked for the group yet."""
    PREPARED = "prepared"
    """It computes."""


@dataclass(slots=True)
class Round:
    """One computation. ``given`` is what the member was given to compute from, at the group epoch
    ``given_epoch``."""

    choice: Choice
    epoch: int
    """the group epoch at which the choice was last found right"""
    phase: Phase = Phase.CHOSEN
    given: Any = None
    given_epoch: int = -1


@dataclass(slots=True)
class _Memory:
    """What a group's rounds leave behind for the next one."""

    last: str | None = None
    failed_at: int = -1
    failed: set[str] = field(default_factory=set[str])


class Rounds:
    """The rounds of all groups of a coordinator."""

    def __init__(self, env: Environment) -> None:
        self._env: Final = env
        self._rounds: Final[dict[str, Round]] = {}
        self._memory: Final[dict[str, _Memory]] = {}
        self._gathering: Final = Gathering(env)

    def of(self, group_id: str) -> Round | None:
        """The round of a group, if there is one."""
        return self._rounds.get(group_id)

    # --- Who computes -----------------------------------------------------------------------------

    def settle(self, now_ms: int, group_id: str) -> None:
        """Look at the group after any change: end a round that lost its member, start one that is
        needed. For groups whose members do not compute this costs nothing."""
        group = self._env.state.groups.get(group_id)
        if not isinstance(group, ReconciledGroup) or not group.client_assigned:
            if group_id in self._rounds:
                self._end(group_id)
            if not isinstance(group, ReconciledGroup) or group.is_empty:
                self._memory.pop(group_id, None)
                self._gathering.forget(group_id)
            return
        running = self._rounds.get(group_id)
        if running is not None and not self._goes_on(group, running):
            self._end(group_id)
            running = None
        needed = running is None and group.epoch > group.assignment_epoch
        if needed and not self._gathering.holds(now_ms, group):
            self._start(now_ms, group)

    def _goes_on(self, group: ReconciledGroup, running: Round) -> bool:
        """Whether the member of the round is still there, and still the one to ask.

        Once it computes, what the others offer does not matter any more.
        """
        member = group.members.get(running.choice.member_id)
        if member is None or member.epoch == STATIC_LEAVE_EPOCH:
            return False
        if running.phase is Phase.PREPARED:
            offer = member.subscription.client_assignors
            return any(each.name == running.choice.assignor for each in offer)
        if running.epoch == group.epoch:
            return True  # every change of an offer that counts moves the epoch
        running.epoch = group.epoch
        return self._choose(group) == running.choice

    def _choose(self, group: ReconciledGroup) -> Choice | None:
        memory = self._memory.setdefault(group.group_id, _Memory())
        offers = offers_of(group.members, group.eldest)
        failed = memory.failed if memory.failed_at == group.epoch else set[str]()
        last = memory.last or group.last_to_compute
        return choose(offers, excluded=failed, last=last, eldest=group.eldest)

    def _start(self, now_ms: int, group: ReconciledGroup) -> None:
        choice = self._choose(group)
        if choice is None:
            return  # the broker computes at the next heartbeat, if it has an assignor
        self._memory[group.group_id].last = choice.member_id
        self._rounds[group.group_id] = Round(choice, group.epoch)
        group.computing = choice.member_id
        # a member that never gets the notice must not delay the group either
        self._arm(now_ms, group, choice.member_id)

    def _arm(self, now_ms: int, group: ReconciledGroup, member_id: str) -> None:
        timeout_ms = max(group.members[member_id].subscription.rebalance_timeout_ms, 0)
        self._env.timers.arm(Timer(TimerKind.COMPUTATION, group.group_id), now_ms + timeout_ms)

    def _end(self, group_id: str) -> None:
        self._rounds.pop(group_id, None)
        group = self._env.state.groups.get(group_id)
        if isinstance(group, ReconciledGroup):
            group.computing = None
        self._env.timers.cancel(Timer(TimerKind.COMPUTATION, group_id))

    def _fail(self, group: ReconciledGroup, member_id: str) -> None:
        """End the round and pass the member over for this group epoch."""
        self._end(group.group_id)
        memory = self._memory.setdefault(group.group_id, _Memory())
        if memory.failed_at != group.epoch:
            memory.failed_at, memory.failed = group.epoch, set()
        memory.failed.add(member_id)

    # --- What happens to a round ------------------------------------------------------------------

    def rejoined(self, group_id: str, member_id: str) -> None:
        """A member joined (again): what it was computing is lost."""
        running = self._rounds.get(group_id)
        if running is not None and running.choice.member_id == member_id:
            self._end(group_id)

    def flag(self, now_ms: int, group_id: str, member_id: str) -> bool:
        """Whether the answer to this member's heartbeat asks it to compute."""
        running = self._rounds.get(group_id)
        if running is None or running.choice.member_id != member_id:
            return False
        if running.phase is Phase.CHOSEN:
            running.phase = Phase.NOTIFIED
            group = self._env.state.groups[group_id]
            assert isinstance(group, ReconciledGroup), "settle() ends the rounds of other groups"
            self._arm(now_ms, group, member_id)
        return running.phase is Phase.NOTIFIED

    def gathered(self, now_ms: int, group_id: str) -> None:
        """The group has waited long enough for others to join."""
        self._gathering.end(group_id)
        self.settle(now_ms, group_id)

    def expired(self, now_ms: int, group_id: str) -> None:
        """The member took longer than its rebalance timeout: another one computes."""
        group, running = self._env.state.groups.get(group_id), self._rounds.get(group_id)
        if isinstance(group, ReconciledGroup) and running is not None:
            self._fail(group, running.choice.member_id)
        self.settle(now_ms, group_id)

    # --- The two requests -------------------------------------------------------------------------

    def prepare(self, how: Computation[G, Any, P, Any], request: FromChosenMember) -> P:
        """Give the chosen member the group as it is now; asking again replaces what it was given.

        Raises ``Refused``. The session of the member is not refreshed.
        """
        group, running = self._admit(how, request)
        running.phase = Phase.PREPARED
        running.given_epoch = group.epoch
        running.given = how.given(self._env.catalog, group, running.choice.assignor)
        return how.answer(running.given)

    def install(
        self, now_ms: int, how: Computation[Any, Any, Any, R], request: R
    ) -> list[StateRecord]:
        """Take the result; the records of the new target. ``settle`` comes next.

        Raises ``Refused``; a result that does not fit passes the member over.
        """
        if any(not row.member_id for row in request.members):
            raise Refused(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
        group, running = self._admit(how, request)
        if running.phase is not Phase.PREPARED:
            raise refused("The assignment was not prepared.")
        if running.given_epoch != request.group_epoch:
            running.phase = Phase.NOTIFIED  # so that the member is asked to prepare again
            raise refused(
                f"The assignment was prepared for group epoch {running.given_epoch}, not "
                f"{request.group_epoch}."
            )
        timestamp_ms = now_ms if self._env.profile.has_assignment_interval else 0
        try:
            records = how.installed(group, running.given, request, timestamp_ms)
        except Refused:
            self._fail(group, running.choice.member_id)
            raise
        self._end(group.group_id)
        return records

    def _admit(
        self, how: Computation[G, Any, Any, Any], request: FromChosenMember
    ) -> tuple[G, Round]:
        """The checks that both requests share."""
        if not request.group_id:
            raise Refused(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
        if not request.member_id:
            raise Refused(ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
        if request.member_epoch < 0:
            raise Refused(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")
        group = self._env.state.groups.get(request.group_id)
        if not isinstance(group, how.kind):
            raise group_id_not_found(request.group_id)
        member = group.members.get(request.member_id)
        if member is None:
            raise Refused(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {request.member_id} is not a member of group {request.group_id}.",
            )
        if member.epoch != request.member_epoch:
            wrong = f"The member epoch is {member.epoch}, not {request.member_epoch}."
            if how.fences_ahead and request.member_epoch > member.epoch:
                raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, wrong)
            raise Refused(ErrorCode.STALE_MEMBER_EPOCH, f"{wrong} Retry after the next heartbeat.")
        running = self._rounds.get(request.group_id)
        if running is None or running.choice.member_id != request.member_id:
            raise Refused(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {request.member_id} is not chosen to compute the assignment of group "
                f"{request.group_id}. It is still a member; it must abandon only the computation.",
            )
        return group, running
