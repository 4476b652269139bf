"""Invariants after every step of a member. A violation is a bug of the member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kip848_client.core.member import _states as st
from kip848_client.core.member._callbacks import Purpose
from kip848_client.core.member._published_state import PublishedState
from kip848_client.core.member._reconcile import AssignmentState
from kip848_client.core.member._states import MemberState

__all__ = ["check"]

_WORK_OF: Final[Mapping[MemberState, tuple[Purpose | None, ...]]] = {
    MemberState.UNSUBSCRIBED: (None,),
    MemberState.JOINING: (None,),
    MemberState.RECONCILING: (None, Purpose.RECONCILE),
    MemberState.ACKNOWLEDGING: (None,),
    MemberState.STABLE: (None,),
    MemberState.FENCED: (Purpose.DROP,),
    MemberState.PREPARE_LEAVING: (Purpose.LEAVE,),
    MemberState.LEAVING: (None,),
    MemberState.STALE: (None, Purpose.DROP),
    MemberState.FATAL: (None, Purpose.DROP),
}
"""The work that may be open for the application in each state."""


def check(
    standing: PublishedState,
    assignment: AssignmentState,
    purpose: Purpose | None,
    *,
    heartbeat_is_open: bool,
    now_ms: int,
    deadline_ms: int | None,
) -> None:
    """Raise ``AssertionError`` if the state of a member is inconsistent."""
    state, member_epoch = standing.state, standing.epoch
    if member_epoch < 0:
        assert state in (MemberState.LEAVING, MemberState.UNSUBSCRIBED, MemberState.STALE)
    if state in (MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE):
        assert member_epoch > 0, "in the group without an epoch"
    if state not in st.IN_GROUP:
        assert not heartbeat_is_open, "a heartbeat is open outside of the group"
        assert assignment.current is None, "something is owned outside of the group"
        assert not assignment.fetchable, "something is fetched outside of the group"
    assert standing.commit_epoch == standing.told_epoch, "committers have the wrong epoch"
    assert (state is not MemberState.STABLE) or assignment.is_met, "STABLE and not done"
    assert assignment.fetchable <= assignment.assigned, "fetching what is not assigned"
    assert not assignment.fetchable & assignment.releasing, "fetching what is on its way out"
    assert not assignment.fetchable & assignment.unprepared, "fetching what is not prepared"
    assert assignment.unprepared <= assignment.assigned, "preparing what is not assigned"
    assert purpose in _WORK_OF[state], f"{purpose} in {state}"
    if purpose is None and not assignment.callback_failed and assignment.current is not None:
        owned = assignment.current.partitions
        assert assignment.assigned == owned, "owned is not what is assigned"
    assert deadline_ms is None or deadline_ms > now_ms, "a deadline in the past would spin"
    assert deadline_ms is not None or state not in st.HEARTBEATING, "nothing can make progress"
