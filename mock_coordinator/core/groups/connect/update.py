"""One request of a worker, of either protocol, during its decision."""

from __future__ import annotations

from mock_coordinator.core.groups.assignment.current_assignment import OwnedReport, Reconciliation
from mock_coordinator.core.groups.membership.member_update import MemberUpdate
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.member import Member

__all__ = ["WorkerUpdate"]


class WorkerUpdate(MemberUpdate):
    """What ConnectGroupHeartbeat and JoinGroup have in common."""

    __slots__ = ()

    def towards_target(
        self, group: ConnectGroup, member: Member, owned: OwnedReport | None
    ) -> Member:
        """The worker after one step towards its target; ``owned`` is what it says it has."""
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        member_id, instance_id = member.member_id, member.instance_id
        target = group.target_of(member_id, instance_id)
        step = Reconciliation(
            profile=self.env.profile,
            target_epoch=group.assignment_epoch,
            target=target,
            holders=group.holders,
            owned=owned,
            subscription_changed=False,
            is_subscribed=lambda _resource: True,
            metadata=group.metadata_of(member_id, instance_id),
            is_held_back=group.release_rule(member_id, target),
        )
        return self.moved(group, member, step)
