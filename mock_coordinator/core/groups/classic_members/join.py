"""JoinGroup of a classic member in a consumer group that has members (KIP-848, migration).

Theory of operation
===================

To the member it looks like a rebalance of a classic group that all others have joined before: the
response is immediate, names a leader that does not exist, and the member's SyncGroup returns the
partitions. To the group it is a heartbeat: the subscription and the owned partitions are read from
the embedded ConsumerProtocol metadata of the member's preferred protocol, the generation is its
member epoch, and one JoinGroup is one step of its reconciliation. A member that must revoke
something therefore joins twice: first to learn of it (the generation stays), then without the
revoked partitions.

A static member that returns with the classic protocol may replace the last member of the consumer
protocol. Then the group becomes a classic group at once (``downgrade``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kip848_client.core.wire.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.assignment.subscriptions import RegexChange
from mock_coordinator.core.groups.assignment.target_assignment import Sender
from mock_coordinator.core.groups.classic.join import offered_protocols, rebalance_timeout_ms
from mock_coordinator.core.groups.classic_members.members import is_behind
from mock_coordinator.core.groups.client_assignors.offers import wants_new_target
from mock_coordinator.core.groups.client_assignors.prepare import member_offer
from mock_coordinator.core.groups.membership.identity import (
    Identity,
    leaving_member,
    replacement,
    require_room,
)
from mock_coordinator.core.groups.membership.member_update import MemberUpdate
from mock_coordinator.core.groups.migration.downgrade import (
    downgrade_by_replacement,
    joined,
    may_replace,
)
from mock_coordinator.core.groups.migration.policy import is_disabled
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerSubscription,
    read_subscription,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import ClassicMemberMetadata
from mock_coordinator.core.groups.state.classic_live import CONSUMER_PROTOCOL_TYPE
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.member import Member, merged
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["decide_join_to_consumer_group"]

_MEMBER_ID_VERSION: Final = 4
"""From this version on, a member first asks for an id and then joins with it (KIP-394)."""


def decide_join_to_consumer_group(
    env: Environment,
    now_ms: int,
    received: RequestReceived,
    request: JoinGroupRequest,
    group: ConsumerGroup,
) -> Decision[JoinGroupResponse | None]:
    """Decide one JoinGroup to a consumer group that has members. Refusals are answers."""
    join = _Join(env, now_ms, group=group, received=received, request=request)
    try:
        return join.decide()
    except Refused as err:
        return Decision(JoinGroupResponse(error_code=err.code))


@dataclass(slots=True)
class _Join(MemberUpdate):
    """One JoinGroup on its way through the steps."""

    group: ConsumerGroup = field(kw_only=True)
    received: RequestReceived = field(kw_only=True)
    request: JoinGroupRequest = field(kw_only=True)

    def decide(self) -> Decision[JoinGroupResponse | None]:
        """Raises ``Refused`` (or -1) when the member is refused."""
        group, request = self.group, self.request
        self._require_welcome()
        member_id = request.member_id or self.env.new_member_id()
        self._require_fit(member_id)
        if self._must_ask_again():
            required = ErrorCode.MEMBER_ID_REQUIRED
            return Decision(JoinGroupResponse(error_code=required, member_id=member_id))
        identity = self._identity(member_id)
        self.records += identity.records
        replaced = group.static_member(request.group_instance_id)
        downgrades = replaced is not None and may_replace(self.env, group, replaced)
        subscription = self._subscription()
        before = identity.member
        after = self._updated(before, subscription)
        change = self.changed_subscription(group, before, after)
        bump = (
            change.names
            or change.regex is not RegexChange.NONE
            or self._has_other_metadata(before, after)
        )
        sender = Sender(before, after, subscription.topics, identity.other)
        epoch = self.group_epoch(group, sender, bump=bump)
        owned = self._owned(subscription)
        if downgrades:
            return downgrade_by_replacement(self, group, sender, epoch, owned, bumped=bump)
        target = self.target(group, epoch, sender)
        member = self.reconciled(group, after, target, owned, changed=change.any)
        self._arm(member)
        return Decision(
            response=joined(member),
            records=self.records,
            timers=self.timers,
            metadata_checked=group.group_id if self.metadata_checked else None,
            resolve=self.resolution(group.group_id, self.received.client),
        )

    # --- Refusals ---------------------------------------------------------------------------------

    def _require_welcome(self) -> None:
        """Whether classic members may join at all: from 4.3 on the policy says."""
        if self.env.profile.classic_join_refused_by_policy and is_disabled(self.env.config):
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Cannot join the consumer group {self.group.group_id} with the classic protocol "
                "because the group migration is disabled.",
            )

    def _require_fit(self, member_id: str) -> None:
        """Whether the group has place for one more, and a protocol that all classic members
        support."""
        env, request = self.env, self.request
        max_size = env.config.integer("group.consumer.max.size")
        instance_id = request.group_instance_id
        require_room(env.profile, self.group, max_size, member_id, instance_id)
        names = [protocol.name for protocol in request.protocols]
        fits = self.group.supports_classic_protocols(names)
        if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not fits:
            raise Refused(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"Member {member_id}'s protocols are not supported.",
            )

    def _must_ask_again(self) -> bool:
        """Whether a dynamic member has yet to be given its id."""
        request = self.request
        dynamic = request.group_instance_id is None
        return dynamic and not request.member_id and self.received.version >= _MEMBER_ID_VERSION

    # --- The member -------------------------------------------------------------------------------

    def _identity(self, member_id: str) -> Identity:
        """The member as it is, or made; a static one without an id takes its old place.

        Raises ``Refused``: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID. Never
        UNRELEASED_INSTANCE_ID: a static member of the classic protocol has no way to say that it
        is only away.
        """
        group, instance_id = self.group, self.request.group_instance_id
        if instance_id is None:
            return Identity(group.members.get(member_id) or Member(member_id))
        if self.request.member_id:
            return Identity(leaving_member(group, member_id, instance_id))
        existing = group.static_member(instance_id)
        if existing is None:
            return Identity(group.members.get(member_id) or Member(member_id))
        return replacement(self.env.profile, group, existing, member_id)

    def _subscription(self) -> ConsumerSubscription:
        """What the member says in its favourite protocol."""
        try:
            return read_subscription(self.request.protocols[0].metadata)[1]
        except WireError as err:
            code = self.env.profile.malformed_subscription_error
            raise Refused(
                ErrorCode(code),
                "Malformed embedded consumer protocol in subscription deserialization.",
            ) from err

    def _updated(self, before: Member, subscription: ConsumerSubscription) -> Member:
        request, client = self.request, self.received.client
        updated = merged(
            before.subscription,
            instance_id=request.group_instance_id,
            rack_id=subscription.rack_id or None,
            client_id=client.client_id or "",
            client_host=client.host,
            rebalance_timeout_ms=rebalance_timeout_ms(self.received, request),
            names=subscription.topics,
            regex="",
            server_assignor=None,
            classic=ClassicMemberMetadata(request.session_timeout_ms, offered_protocols(request)),
        )
        return before if updated is before.subscription else replace(before, subscription=updated)

    def _has_other_metadata(self, before: Member, after: Member) -> bool:
        """Whether the member joins again to say something new to an assignor that others run."""
        group = self.group
        if not group.offers or before.subscription is after.subscription:
            return False
        if before.state is not MemberState.STABLE or is_behind(self.env, group, before):
            # It had to join again, and many assignors embed what they had or the generation of it:
            # were that a reason to compute, the group would never come to rest.
            return False
        run = {
            each.name
            for member in group.members.values()
            for each in member.subscription.client_assignors
        }
        old, new = (
            tuple(each for each in member_offer(member).assignors if each.name in run)
            for member in (before, after)
        )
        return wants_new_target(old, new)

    def _owned(
        self, subscription: ConsumerSubscription
    ) -> Sequence[ConsumerGroupHeartbeatRequestTopicPartitions]:
        """The partitions that the member still has, by topic id; unknown topics do not count."""
        owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = []
        for each in subscription.owned_partitions:
            topic = self.env.catalog.topic(each.topic)
            if topic is not None:
                owned.append(
                    ConsumerGroupHeartbeatRequestTopicPartitions(
                        topic_id=topic.topic_id, partitions=each.partitions
                    )
                )
        return owned

    def _arm(self, member: Member) -> None:
        """It has joined in time; now it must ask for its partitions in time."""
        request, group_id = self.request, self.group.group_id
        member_id = member.member_id
        self.timers.append(TimerChange(Timer(TimerKind.MEMBER_JOIN, group_id, member_id), None))
        self.arm(TimerKind.SESSION, group_id, member_id, request.session_timeout_ms)
        timeout_ms = max(rebalance_timeout_ms(self.received, request), 0)
        self.arm(TimerKind.MEMBER_SYNC, group_id, member_id, timeout_ms)
