"""The snapshot of a member for tests, traces and health checks."""

from __future__ import annotations

from kip848_client.core.member._application import Application
from kip848_client.core.member._coordinator import CoordinatorLink
from kip848_client.core.member._heartbeat import HeartbeatClock
from kip848_client.core.member._model import MemberSnapshot, group_by_topic
from kip848_client.core.member._published_state import PublishedState
from kip848_client.core.member._reconcile import AssignmentState
from kip848_client.core.types import MemberId

__all__ = ["take_snapshot"]


def take_snapshot(
    member_id: MemberId,
    standing: PublishedState,
    application: Application,
    assignment: AssignmentState,
    link: CoordinatorLink,
    clock: HeartbeatClock,
    *,
    now_ms: int,
    stale_answers: int,
    closed: bool,
) -> MemberSnapshot:
    """Take a frozen copy of the parts of a member."""
    current, target = assignment.current, assignment.target
    subscription = application.subscription
    return MemberSnapshot(
        state=standing.state,
        member_id=member_id,
        member_epoch=standing.epoch,
        subscribed_topics=() if subscription is None else subscription.topics,
        subscribed_regex=None if subscription is None else subscription.pattern,
        assigned=assignment.describe(assignment.assigned),
        current=None if current is None else group_by_topic(current.partitions),
        target=None if target is None else group_by_topic(target.partitions),
        unresolved=assignment.unresolved(),
        coordinator_known=link.known,
        coordinator_silent_ms=link.silent_ms(now_ms),
        waits=link.waits(),
        poll_age_ms=application.poll_age_ms(now_ms),
        heartbeat_interval_ms=clock.interval_ms,
        consecutive_failures=clock.failures,
        consecutive_fences=clock.fences,
        stale_answers=stale_answers,
        closed=closed,
    )
