"""Time in classic groups: sessions, the ends of phases, and loading."""

from __future__ import annotations

from mock_coordinator.core.groups.classic.rebalance import Rebalance
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.timers import Timer, TimerKind

__all__ = ["CLASSIC_TIMERS", "decide_loaded", "decide_timer"]

CLASSIC_TIMERS = (TimerKind.CLASSIC_SESSION, TimerKind.JOIN_PHASE, TimerKind.SYNC_PHASE)
"""The timers that ``decide_timer`` is for."""


def decide_timer(env: Environment, now_ms: int, timer: Timer, payload: int) -> Decision[None]:
    """A timer of a classic group is up. A group that is gone, or of another type now, does not
    care."""
    group = env.state.groups.get(timer.group_id)
    if not isinstance(group, ClassicGroup):
        return Decision(None)
    step = Rebalance(env, now_ms, timer.group_id, group.live)
    if timer.kind is TimerKind.JOIN_PHASE:
        step.join_phase_over()
    elif timer.kind is TimerKind.SYNC_PHASE:
        step.sync_phase_over(payload)
    else:
        _expire(step, timer.member_id)
    return step.decision(None)


def _expire(step: Rebalance, member_id: str) -> None:
    """A session is over. A member that waits for the coordinator is excused, except a new one: it
    might be gone for good."""
    live = step.live
    if member_id in live.pending_joins:
        live.remove(member_id)
        step.complete_join_if_all_joined()
        return
    member = live.members.get(member_id)
    if member is None or member.satisfies_heartbeat:
        return
    step.remove(member_id)
    if live.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        step.prepare()
    else:
        step.complete_join_if_all_joined()


def decide_loaded(env: Environment, now_ms: int, group: ClassicGroup) -> Decision[None]:
    """After loading: sessions start over, and a group that is larger than allowed by now
    rebalances, which shrinks it."""
    step = Rebalance(env, now_ms, group.group_id, group.live)
    for member in step.live.members.values():
        step.arm_session(member.member_id, member.session_timeout_ms)
    if len(step.live.members) > env.config.integer("group.max.size"):
        step.prepare()
    return step.decision(None)
