"""When to wake a member if nothing happens before: the earliest of all its deadlines."""

from __future__ import annotations

from kip848_client.core.member import _states as st
from kip848_client.core.member._application import Application
from kip848_client.core.member._callbacks import CallbackWork
from kip848_client.core.member._coordinator import CoordinatorLink
from kip848_client.core.member._heartbeat import HeartbeatClock
from kip848_client.core.member._leave import Leave
from kip848_client.core.member._membership import Membership
from kip848_client.core.member._states import MemberState
from kip848_client.core.member._topic_names import NameLookup

__all__ = ["Deadlines"]


class Deadlines:
    """Reads the deadlines of a member's parts. Changes none of them."""

    def __init__(
        self,
        link: CoordinatorLink,
        clock: HeartbeatClock,
        work: CallbackWork,
        names: NameLookup,
        application: Application,
    ) -> None:
        self._link = link
        self._clock = clock
        self._work = work
        self._names = names
        self._application = application

    def next_ms(
        self, now_ms: int, state: MemberState, membership: Membership, leave: Leave | None
    ) -> int | None:
        """When to deliver ``TimerFired``; ``None`` for never."""
        times = [self._work.flush_by_ms]
        if state in st.HEARTBEATING:
            times += [self._link.next_lookup_ms(), self._link.report_due_ms()]
        if state in st.TAKES_ASSIGNMENT:
            times += [*self._of_application(), membership.session_until_ms]
        if self._link.known and state in st.IN_GROUP and membership.open is None:
            urgent = membership.is_urgent(state)
            times.append(self._clock.next_ms(now_ms, urgent=urgent))
        if leave is not None:
            due_ms = leave.due_ms(coordinator_known=self._link.known)
            times.append(due_ms if state is MemberState.LEAVING else leave.deadline_ms)
        return min((time for time in times if time is not None), default=None)

    def _of_application(self) -> list[int | None]:
        unresolved = self._work.assignment.unresolved()
        times = [self._names.due_ms(unresolved), self._application.stall_due_ms]
        if self._link.known:
            times.append(self._application.poll_by_ms)
        return times
