"""Two checks of a group as it will be after a heartbeat."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.target_assignment import Sender
from mock_coordinator.core.groups.client_assignors.offers import require_overlap
from mock_coordinator.core.groups.client_assignors.prepare import offers_of
from mock_coordinator.core.groups.client_assignors.selection import Offer, candidates, choose
from mock_coordinator.core.groups.records.assignor_values import CLASSIC_VERSION, ClientAssignor
from mock_coordinator.core.groups.records.connect_records import WorkerSubscription
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.refused import Refused

__all__ = ["members_compute", "require_computable", "require_served"]


def members_compute(group: ConsumerGroup, sender: Sender) -> bool:
    """Whether a member computes the next target, and not the broker."""
    if not _all_offer(group, sender):
        return False
    return (
        group.computing is not None
        or choose(_offers(group, sender.after, sender.replaced)) is not None
    )


def require_computable(
    group: ReconciledGroup,
    before: Member,
    after: Member,
    *,
    replaced: str | None,
    broker_can: bool = True,
) -> None:
    """Raise ``Refused`` UNSUPPORTED_ASSIGNOR when a changed offer cannot go together with those of
    the others: no common version of an assignor, classic members whom it cannot serve, or no member
    left who understands all the versions in use; and no common assignor, unless the broker could
    compute then (``broker_can``)."""
    offer = after.subscription.client_assignors
    if not offer or offer is before.subscription.client_assignors:
        return
    offers = _offers(group, after, replaced)
    others = {
        member_id: group.members[member_id].subscription.client_assignors
        for member_id in offers
        if member_id != after.member_id
    }
    require_overlap(offer, others)
    _require_classic_version(group, offer, {after.member_id, replaced})
    common = candidates(offers)
    if not common and not broker_can:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "With these ClientAssignors there would be none that all members offer.",
        )
    if common and choose(offers) is None:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            "With these ClientAssignors no member could read the metadata of all members.",
        )


def require_served(group: ReconciledGroup, after: Member) -> None:
    """Raise ``Refused`` INCONSISTENT_GROUP_PROTOCOL when a worker of the classic protocol says
    something that no member of the group could read."""
    offers = _offers(group, after, None)
    if candidates(offers) and choose(offers) is None:
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def _require_classic_version(
    group: ReconciledGroup, offer: Iterable[ClientAssignor], excepted: Collection[str | None]
) -> None:
    """The member that computes for classic members must read what they embed, and write what they
    read."""
    for member_id, member in group.members.items():
        if member.classic is None or member_id in excepted:
            continue
        if isinstance(member.subscription, WorkerSubscription):
            continue  # the names of its protocols are none of assignors
        names = {each.name for each in member.classic.supported_protocols}
        for own in offer:
            if own.name in names and own.minimum_version > CLASSIC_VERSION:
                raise Refused(
                    ErrorCode.UNSUPPORTED_ASSIGNOR,
                    f"ClientAssignor {own.name} has versions {own.minimum_version} to "
                    f"{own.maximum_version}. It needs version {CLASSIC_VERSION}, too, because "
                    f"member {member_id} uses {own.name} with the classic protocol.",
                )


def _all_offer(group: ConsumerGroup, sender: Sender) -> bool:
    """``ConsumerGroup.client_assigned`` once the sender is counted in, in constant time."""
    after = sender.after
    offers = group.offers + bool(after.subscription.client_assignors)
    others = group.classic_members + (after.classic is not None)
    size = len(group.members) + 1
    if sender.before.member_id in group.members or sender.replaced is not None:
        offers -= bool(sender.before.subscription.client_assignors)
        others -= sender.before.classic is not None
        size -= 1
    return offers > 0 and offers + others == size


def _offers(group: ReconciledGroup, after: Member, replaced: str | None) -> dict[str, Offer]:
    members = {each: member for each, member in group.members.items() if each != replaced}
    members[after.member_id] = after
    return offers_of(members, group.eldest)
