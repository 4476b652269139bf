"""JoinGroup (API 11) of a classic group: which members are admitted, and when a rebalance begins.

A dynamic member sends two requests: one without an id, to get one (MEMBER_ID_REQUIRED, from version
4 on; KIP-394), and one with it. A static member without an id replaces the member that had its
instance id, whose requests are fenced from then on (FENCED_INSTANCE_ID, KIP-345); in a Stable group
no other member notices, unless the change elects another protocol. A known member that joins again
begins a rebalance if it is the leader or has changed; otherwise the response has the group's state.

The first JoinGroup without a member id creates a group, even if it is refused; it also replaces a
consumer group without members (KIP-848).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.wire.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.classic.rebalance import (
    Rebalance,
    generation_info,
    join_answer,
)
from mock_coordinator.core.groups.records.state_records import (
    ClassicProtocol,
    GroupMetadata,
    StateRecord,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_identity import require_member
from mock_coordinator.core.groups.state.classic_live import LiveGroup, LiveMember
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = [
    "JoinDecision",
    "decide_join",
    "generated_member_id",
    "offered_protocols",
    "rebalance_timeout_ms",
    "refused_join",
]

JoinDecision = Decision[JoinGroupResponse | None]
"""None: the member waits for the end of the join phase."""

_KNOWN_ID_VERSION: Final = 4
"""From this version on a dynamic member is sent away once to come back with an id (KIP-394)."""
_SKIPPED_ASSIGNMENT_VERSION: Final = 9
"""From this version on an answer can ask the leader not to assign (KIP-814)."""
_UUID_TEXT_LENGTH: Final = 22
_UUID_GROUPS: Final = ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))


def decide_join(
    env: Environment,
    now_ms: int,
    received: RequestReceived,
    request: JoinGroupRequest,
    group: ClassicGroup | None,
    tombstones: Sequence[StateRecord] = (),
) -> JoinDecision:
    """Decide one JoinGroup to a classic group.

    ``group`` is None when there is none, or when an empty consumer group gives way, whose
    ``tombstones`` are then written first. Never raises ``Refused``: refusals are answers, and
    may come with records.
    """
    if group is None and request.member_id:
        return Decision(refused_join(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))
    live = LiveGroup(state_timestamp_ms=now_ms) if group is None else group.live
    step = Rebalance(env, now_ms, request.group_id, live)
    response = _Join(step, received, request).answer()
    if group is None:
        step.records.extend(tombstones)
        empty = LiveGroup(state_timestamp_ms=now_ms).stored()
        step.records.append(GroupMetadata(request.group_id, empty))
    return step.decision(None if response is None else join_answer(received, response))


def refused_join(code: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """An answer that is only an error."""
    return JoinGroupResponse(error_code=code, member_id=member_id)


def offered_protocols(request: JoinGroupRequest) -> tuple[ClassicProtocol, ...]:
    """What a member offers, in its order of preference."""
    return tuple(ClassicProtocol(each.name, bytes(each.metadata)) for each in request.protocols)


def rebalance_timeout_ms(received: RequestReceived, request: JoinGroupRequest) -> int:
    """Version 0 has no timeout for rebalances, and uses the one for sessions (KIP-62)."""
    return request.rebalance_timeout_ms if received.version else request.session_timeout_ms


def generated_member_id(
    env: Environment, received: RequestReceived, instance_id: str | None
) -> str:
    """A member id as Kafka makes them: the instance id or client id, and a random UUID, any one."""
    prefix = received.client.client_id if instance_id is None else instance_id
    return f"{'null' if prefix is None else prefix}-{_uuid_text(env.random_id())}"


def _uuid_text(generated: str) -> str:
    """The hexadecimal form of a UUID in base64; another text stays as it is."""
    if len(generated) != _UUID_TEXT_LENGTH:
        return generated
    try:
        digits = base64.urlsafe_b64decode(generated + "==").hex()
    except (binascii.Error, ValueError):
        return generated
    return "-".join(digits[start:end] for start, end in _UUID_GROUPS)


class _Join:
    """One JoinGroup request on its way into the group."""

    def __init__(
        self, step: Rebalance, received: RequestReceived, request: JoinGroupRequest
    ) -> None:
        self._step = step
        self._live = step.live
        self._received = received
        self._request = request
        self._protocols = offered_protocols(request)
        self._rebalance_timeout_ms = rebalance_timeout_ms(received, request)

    def answer(self) -> JoinGroupResponse | None:
        """Do what the request asks for; the answer, or None when it has to wait."""
        member_id = self._request.member_id
        if not self._has_room(member_id):
            self._live.remove(member_id)
            return refused_join(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not self._live.supports(self._request.protocol_type, self._protocols):
            return refused_join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        if not member_id:
            return self._new_member()
        if member_id in self._live.pending_joins:
            return self._expected_member()
        try:
            require_member(self._live, member_id, self._request.group_instance_id)
        except Refused as err:
            refusal = refused_join(err.code, member_id)
            refusal.protocol_name = None
            return refusal
        return self._known_member(self._live.members[member_id])

    def _has_room(self, member_id: str) -> bool:
        """Whether the group may have this member. During the join phase those who joined count:
        when a group has become too large, the last ones to come are out."""
        live = self._live
        max_size = self._step.env.config.integer("group.max.size")
        if live.state is GroupState.EMPTY:
            return True
        member = live.members.get(member_id)
        if live.state is GroupState.PREPARING_REBALANCE:
            already_waits = member is not None and member.awaiting_join is not None
            return already_waits or live.awaiting_joins < max_size
        return member is not None or len(live.members) < max_size

    # --- A member without an id -------------------------------------------------------------------

    def _new_member(self) -> JoinGroupResponse | None:
        request = self._request
        instance_id = request.group_instance_id
        member_id = generated_member_id(self._step.env, self._received, instance_id)
        if instance_id is not None and instance_id in self._live.static_members:
            self._replace(self._live.static_members[instance_id], member_id)
        elif instance_id is None and self._received.version >= _KNOWN_ID_VERSION:
            self._live.pending_joins[member_id] = None
            self._step.arm_session(member_id, request.session_timeout_ms)
            return refused_join(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(member_id)
        return None

    def _expected_member(self) -> JoinGroupResponse | None:
        """A member is back with the id that it was given. Only dynamic members are given one, and
        Kafka fails on a static one that has got hold of it."""
        if self._request.group_instance_id is not None:
            return refused_join(ErrorCode.UNKNOWN_SERVER_ERROR)
        self._add(self._request.member_id)
        return None

    def _add(self, member_id: str) -> None:
        client = self._received.client
        member = LiveMember(
            member_id=member_id,
            instance_id=self._request.group_instance_id,
            client_id=client.client_id or "",
            client_host=client.host,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            session_timeout_ms=self._request.session_timeout_ms,
            protocols=self._protocols,
            is_new=True,
            awaiting_join=self._received,
        )
        self._step.add(member, self._request.protocol_type)

    # --- A static member that takes its place again -----------------------------------------------

    def _replace(self, old_id: str, new_id: str) -> None:
        """Fence the member with the old id, and join in its place."""
        step, live = self._step, self._live
        old_leader = live.leader
        step.fence(old_id)
        live.rename(old_id, new_id)
        step.arm_session(new_id, live.members[new_id].session_timeout_ms)
        self._update(live.members[new_id])
        if live.state is GroupState.STABLE and live.protocol == live.elected_protocol():
            step.store()
            self._tell_replacement(new_id, old_leader)
        elif live.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            # the leader may know the old id: it has to assign again
            step.prepare()
        else:
            step.maybe_complete_join()

    def _tell_replacement(self, new_id: str, old_leader: str | None) -> None:
        """The group goes on as it is. A leader that cannot be asked to skip the assignment hears
        that its former self leads, so that it does not assign."""
        live = self._live
        skips = self._received.version >= _SKIPPED_ASSIGNMENT_VERSION
        leads = skips and live.leader == new_id
        info = generation_info(live, new_id, with_members=leads)
        info.skip_assignment = leads
        if not skips:
            info.leader = old_leader or ""
        self._step.answer_join(new_id, info)

    # --- A member that is known -------------------------------------------------------------------

    def _known_member(self, member: LiveMember) -> JoinGroupResponse | None:
        live = self._live
        leads = live.leader == member.member_id
        unchanged = member.protocols == self._protocols
        if live.state is GroupState.EMPTY:
            return refused_join(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)
        if live.state is GroupState.COMPLETING_REBALANCE and unchanged:
            # it may not have got the answer to its first JoinGroup
            return generation_info(live, member.member_id, with_members=leads)
        if live.state is GroupState.STABLE and unchanged and not leads:
            return generation_info(live, member.member_id)
        self._update(member)
        self._step.rebalance_or_complete()
        return None

    def _update(self, member: LiveMember) -> None:
        self._live.members[member.member_id] = replace(
            member,
            protocols=self._protocols,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            session_timeout_ms=self._request.session_timeout_ms,
            awaiting_join=self._received,
        )
