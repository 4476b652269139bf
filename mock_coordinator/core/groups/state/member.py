"""One member of a consumer group: what it reported, and its progress. Immutable.

A heartbeat builds a changed copy, compares it with the old one, and each difference becomes a
record. A heartbeat that changes nothing must not build anything (``merged`` returns the same
object), because 10,000 members send one every few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.assignor_values import ClientAssignor
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicMemberMetadata,
    CurrentAssignment,
    MemberSubscription,
    OwnedPartitions,
)

__all__ = ["Member", "merged", "outdated_error", "partition_count", "same_owned"]


@dataclass(frozen=True, slots=True)
class Member:
    """A member as the coordinator knows it.

    ``subscription`` and ``current`` are the values of its two latest records, so that applying one
    is an assignment and not a translation.
    """

    member_id: str
    subscription: MemberSubscription = field(default_factory=MemberSubscription)
    current: CurrentAssignment = field(default_factory=CurrentAssignment)

    @property
    def epoch(self) -> int:
        """0 joining, > 0 live, -2 a static member that is away, -1 a member being removed."""
        return self.current.member_epoch

    @property
    def previous_epoch(self) -> int:
        """The epoch before the latest change of ``current``, even when it is the same number."""
        return self.current.previous_member_epoch

    @property
    def state(self) -> MemberState:
        """Where it is on the way to its target."""
        return self.current.state

    @property
    def assigned(self) -> OwnedPartitions:
        """What it may use."""
        return self.current.assigned

    @property
    def pending_revocation(self) -> OwnedPartitions:
        """What it has to give up, until it acknowledges."""
        return self.current.pending_revocation

    @property
    def instance_id(self) -> str | None:
        """Set for a static member (KIP-345)."""
        return self.subscription.instance_id

    @property
    def classic(self) -> ClassicMemberMetadata | None:
        """Set for a member that uses the classic protocol in a consumer group."""
        return self.subscription.classic

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether there is nothing left to do for this member."""
        current = self.current
        return current.state is MemberState.STABLE and current.member_epoch == target_epoch


def merged(
    subscription: MemberSubscription,
    *,
    instance_id: str | None,
    rack_id: str | None,
    client_id: str,
    client_host: str,
    rebalance_timeout_ms: int,
    names: Sequence[str] | None,
    regex: str | None,
    server_assignor: str | None,
    classic: ClassicMemberMetadata | None = None,
    client_assignors: tuple[ClientAssignor, ...] | None = None,
) -> MemberSubscription:
    """The subscription after a heartbeat: what it carries replaces, null (or -1) keeps.

    Client id and host always replace, and so does ``classic``: a member that sends a consumer
    heartbeat uses the classic protocol no more. Returns the same object when nothing differs.
    """
    old = subscription
    wanted = old.subscribed_topic_names if names is None else tuple(sorted(set(names)))
    if (
        (instance_id is None or instance_id == old.instance_id)
        and (rack_id is None or rack_id == old.rack_id)
        and client_id == old.client_id
        and client_host == old.client_host
        and (rebalance_timeout_ms in (-1, old.rebalance_timeout_ms))
        and (regex is None or regex == old.subscribed_topic_regex)
        and (server_assignor is None or server_assignor == old.server_assignor)
        and classic == old.classic
        and (client_assignors is None or client_assignors == old.client_assignors)
    ):
        if wanted == old.subscribed_topic_names:
            return old
        return replace(old, subscribed_topic_names=wanted)
    asked = old.server_assignor if server_assignor is None else server_assignor
    offered = old.client_assignors if client_assignors is None else client_assignors
    if (
        client_assignors
    ):  # a member that offers assignors asks for none of the broker's, and vice versa
        asked = None
    elif server_assignor is not None or classic is not None:
        offered = ()
    return MemberSubscription(
        instance_id=old.instance_id if instance_id is None else instance_id,
        rack_id=old.rack_id if rack_id is None else rack_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=(
            old.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        subscribed_topic_names=wanted,
        subscribed_topic_regex=old.subscribed_topic_regex if regex is None else regex,
        server_assignor=asked,
        client_assignors=offered,
        classic=classic,
    )


def outdated_error(member: Member) -> ErrorCode:
    """The error for an epoch that is not the current one, as the member's protocol has it."""
    if member.classic is None:
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION


def same_owned(left: OwnedPartitions, right: OwnedPartitions) -> bool:
    """Whether both hold the same partitions, whatever the epochs at which they were assigned."""
    if left is right:
        return True
    return left.keys() == right.keys() and all(
        partitions.keys() == right[topic_id].keys() for topic_id, partitions in left.items()
    )


def partition_count(owned: OwnedPartitions) -> int:
    """How many partitions these are."""
    return sum(map(len, owned.values()))
