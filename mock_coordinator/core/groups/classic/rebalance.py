"""One step of a classic group: all members join, the leader assigns, all members sync.

Theory of operation
===================

A rebalance has two phases. In the *join* phase (PreparingRebalance) JoinGroup requests wait until
all members have joined, or until the longest rebalance timeout is over; a member that is missing
then is removed, unless it is static (KIP-345). A new generation begins: a protocol that all members
offer is elected, the requests are answered, and the leader gets the members' subscriptions. In the
*sync* phase (CompletingRebalance) SyncGroup requests wait for the leader's, which has the
assignments of all members. They are stored and returned, and the group is Stable.

The first members of an empty group do not begin at once but after
``group.initial.rebalance.delay.ms``, which is repeated as long as others join (KIP-134).

A ``Rebalance`` applies one request, or one timer, to a copy of the group. The result is a
``Decision``; until that is performed nothing has happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.consumer_protocol import has_impossible_length
from mock_coordinator.core.groups.records.state_records import GroupMetadata, StateRecord
from mock_coordinator.core.groups.state.classic_live import InitialDelay, LiveGroup, LiveMember
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.inputs import RequestReceived

__all__ = ["NEW_MEMBER_JOIN_TIMEOUT_MS", "Rebalance", "generation_info", "join_answer"]

R = TypeVar("R")

NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000
"""How long a member may wait for its first generation: it cannot heartbeat before, and nothing
shows whether it still waits. Fixed in Kafka, too."""

NULLABLE_PROTOCOL_VERSION: Final = 7
"""From this version on JoinGroup answers may have no protocol name (KIP-559)."""

_CAN_REBALANCE: Final = (
    GroupState.EMPTY,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


def join_answer(received: RequestReceived, response: JoinGroupResponse) -> JoinGroupResponse:
    """The response as the version of the request has it: no protocol name is null or empty."""
    if not response.protocol_name:
        response.protocol_name = None if received.version >= NULLABLE_PROTOCOL_VERSION else ""
    return response


def generation_info(
    live: LiveGroup, member_id: str, *, with_members: bool = False
) -> JoinGroupResponse:
    """What a member gets of the current generation; leaders see the members."""
    members: tuple[JoinGroupResponseMember, ...] = ()
    if with_members:
        members = tuple(
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(live.protocol),
            )
            for member in live.in_order()
        )
    return JoinGroupResponse(
        generation_id=live.generation,
        protocol_type=live.protocol_type,
        protocol_name=live.protocol,
        leader=live.leader or "",
        member_id=member_id,
        members=members,
    )


class Rebalance:
    """A classic group, for the length of one request or timer.

    ``live`` may be looked at and changed by the caller: it is a copy.
    """

    def __init__(self, env: Environment, now_ms: int, group_id: str, live: LiveGroup) -> None:
        self.env: Final = env
        self.now_ms: Final = now_ms
        self.group_id: Final = group_id
        self.live: Final = live.copy()
        self.records: Final[list[StateRecord]] = []
        self._timers: Final[list[TimerChange]] = []
        self._replies: Final[list[tuple[RequestReceived, Message]]] = []

    def decision(self, response: R) -> Decision[R]:
        """Everything that came together, with the answer to the request at hand (None: later)."""
        return Decision(
            response,
            self.records,
            self._timers,
            live=(self.group_id, self.live),
            replies=self._replies,
        )

    def store(self) -> None:
        """Write the group down as it is now."""
        self.records.append(GroupMetadata(self.group_id, self.live.stored()))

    # --- Timers -----------------------------------------------------------------------------------

    def arm_session(self, member_id: str, timeout_ms: int) -> None:
        """Expect a sign of life within this time."""
        self._arm(Timer(TimerKind.CLASSIC_SESSION, self.group_id, member_id), timeout_ms)

    def cancel_session(self, member_id: str) -> None:
        """Expect nothing of this member any more."""
        timer = Timer(TimerKind.CLASSIC_SESSION, self.group_id, member_id)
        self._timers.append(TimerChange(timer, None))

    def _arm(self, timer: Timer, timeout_ms: int, payload: int = 0) -> None:
        self._timers.append(TimerChange(timer, self.now_ms + max(timeout_ms, 0), payload))

    def _cancel(self, kind: TimerKind) -> None:
        self._timers.append(TimerChange(Timer(kind, self.group_id), None))

    # --- Waiting requests -------------------------------------------------------------------------

    def answer_join(self, member_id: str, response: JoinGroupResponse) -> None:
        """Answer the member's JoinGroup, if one is waiting."""
        member = self.live.members[member_id]
        if member.awaiting_join is not None:
            answer = join_answer(member.awaiting_join, response)
            self._replies.append((member.awaiting_join, answer))
            self.live.members[member_id] = replace(member, awaiting_join=None)

    def answer_sync(self, member_id: str, response: SyncGroupResponse) -> bool:
        """Answer the member's SyncGroup; whether one was waiting."""
        member = self.live.members[member_id]
        if member.awaiting_sync is None:
            return False
        self._replies.append((member.awaiting_sync, response))
        self.live.members[member_id] = replace(member, awaiting_sync=None)
        return True

    def refuse_all(self, code: ErrorCode) -> None:
        """Answer every waiting request with an error, and stop all timers: the group is over."""
        for member_id in list(self.live.members):
            self.answer_join(member_id, JoinGroupResponse(error_code=code, member_id=member_id))
            self.answer_sync(member_id, SyncGroupResponse(error_code=code))
            self.cancel_session(member_id)
        for member_id in self.live.pending_joins:
            self.cancel_session(member_id)
        self._cancel(TimerKind.JOIN_PHASE)
        self._cancel(TimerKind.SYNC_PHASE)

    # --- Members ----------------------------------------------------------------------------------

    def add(self, member: LiveMember, protocol_type: str) -> None:
        """Take in a member that has just joined, and see what follows."""
        live = self.live
        waiting_for_company = live.previous_state is GroupState.EMPTY
        if live.state is GroupState.PREPARING_REBALANCE and waiting_for_company:
            live.new_member_added = True
        if not live.members:
            live.protocol_type = protocol_type
        live.put(member)
        self.arm_session(member.member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.rebalance_or_complete()

    def fence(self, member_id: str) -> None:
        """Answer what waits under this member id with FENCED_INSTANCE_ID: another member has
        taken its place."""
        code = ErrorCode.FENCED_INSTANCE_ID
        refusal = JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)
        self.answer_join(member_id, refusal)
        self.answer_sync(member_id, SyncGroupResponse(error_code=code))

    def remove(self, member_id: str) -> None:
        """Take a member out; its JoinGroup is answered with UNKNOWN_MEMBER_ID, so that it may try
        again."""
        refusal = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
        self.answer_join(member_id, refusal)
        self.live.remove(member_id)

    # --- The join phase ---------------------------------------------------------------------------

    def rebalance_or_complete(self) -> None:
        """Begin a rebalance, or look whether the one that is going on is complete now."""
        if self.live.state in _CAN_REBALANCE:
            self.prepare()
        else:
            self.maybe_complete_join()

    def prepare(self) -> None:
        """Begin the join phase. Waiting SyncGroups get REBALANCE_IN_PROGRESS: join again."""
        live = self.live
        if live.state is GroupState.COMPLETING_REBALANCE:
            self.hand_out({}, ErrorCode.REBALANCE_IN_PROGRESS)
        live.pending_syncs.clear()
        self._cancel(TimerKind.SYNC_PHASE)
        initial = live.state is GroupState.EMPTY
        live.enter(GroupState.PREPARING_REBALANCE, self.now_ms)
        if initial:
            delay_ms = self.env.config.integer("group.initial.rebalance.delay.ms")
            self._wait_for_company(delay_ms, max(live.rebalance_timeout_ms - delay_ms, 0))
        elif live.has_all_joined:
            self.complete_join()
        else:
            self._arm(Timer(TimerKind.JOIN_PHASE, self.group_id), live.rebalance_timeout_ms)

    def maybe_complete_join(self) -> None:
        """End the join phase if all are there; the first one only ends by time."""
        live = self.live
        if (
            live.state is GroupState.PREPARING_REBALANCE
            and live.previous_state is not GroupState.EMPTY
            and live.has_all_joined
        ):
            self.complete_join()

    def complete_join_if_all_joined(self) -> None:
        """A member is gone: the join phase may be complete now, even the first one."""
        if self.live.state is GroupState.PREPARING_REBALANCE and self.live.has_all_joined:
            self.complete_join()

    def _wait_for_company(self, delay_ms: int, remaining_ms: int) -> None:
        self.live.initial_delay = InitialDelay(delay_ms, remaining_ms)
        self._arm(Timer(TimerKind.JOIN_PHASE, self.group_id), delay_ms)

    def join_phase_over(self) -> None:
        """The time for joining is up; while an empty group still gets members, it waits on."""
        live = self.live
        delay = live.initial_delay
        if delay is not None and live.new_member_added and delay.remaining_ms != 0:
            live.new_member_added = False
            configured_ms = self.env.config.integer("group.initial.rebalance.delay.ms")
            next_ms = min(configured_ms, delay.remaining_ms)
            self._wait_for_company(next_ms, max(delay.remaining_ms - delay.delay_ms, 0))
        else:
            self.complete_join()

    def complete_join(self) -> None:
        """End the join phase: a new generation, of those who have joined and of static members."""
        live = self.live
        self._cancel(TimerKind.JOIN_PHASE)
        live.initial_delay = None
        missing = [
            member.member_id
            for member in live.members.values()
            if member.awaiting_join is None and member.instance_id is None
        ]
        for member_id in missing:
            live.remove(member_id)
            self.cancel_session(member_id)
        if not self._elect_leader() and live.members:
            # only static members, and none joined: wait for their sessions to end
            self._arm(Timer(TimerKind.JOIN_PHASE, self.group_id), live.rebalance_timeout_ms)
            return
        if live.members and self._fails():
            live.generation += 1
            return
        live.next_generation(self.now_ms)
        if not live.members:
            self.store()
            return
        for member_id in list(live.members):
            leads = member_id == live.leader
            self.answer_join(member_id, generation_info(live, member_id, with_members=leads))
            member = live.members[member_id]
            live.members[member_id] = replace(member, is_new=False)
            live.pending_syncs[member_id] = None
            self.arm_session(member_id, member.session_timeout_ms)
        timer = Timer(TimerKind.SYNC_PHASE, self.group_id)
        self._arm(timer, live.rebalance_timeout_ms, live.generation)

    def _fails(self) -> bool:
        """Whether Kafka fails to begin the generation, so that the members wait until they are
        given up: when a member offers a protocol twice, which counts as two offers, so that no
        protocol has the right number; and up to 4.3 when a subscription is nonsense."""
        live = self.live
        protocol = live.elected_protocol()
        if protocol is None:
            return True
        if not live.uses_consumer_protocol or not self.env.profile.nonsense_stalls_join:
            return False
        said = (member.metadata(protocol) for member in live.members.values())
        if not any(map(has_impossible_length, said)):
            return False
        live.protocol = protocol
        return True

    def _elect_leader(self) -> bool:
        """The leader stays if it has joined; else the first one that did takes over. False when
        there is none."""
        live = self.live
        if live.leader is None:
            return False
        leader = live.members.get(live.leader)
        if leader is not None and leader.awaiting_join is not None:
            return True
        joined = (each.member_id for each in live.in_order() if each.awaiting_join is not None)
        successor = next(joined, None)
        if successor is None:
            return False
        live.leader = successor
        return True

    # --- The sync phase ---------------------------------------------------------------------------

    def hand_out(self, assignments: Mapping[str, bytes], code: ErrorCode = ErrorCode.NONE) -> None:
        """Give every member its assignment (an empty one if there is none) and answer waiting
        SyncGroup requests."""
        live = self.live
        for member_id, member in list(live.members.items()):
            given = assignments.get(member_id, b"")
            live.members[member_id] = replace(member, assignment=given)
            response = SyncGroupResponse(error_code=code, assignment=given)
            if code is ErrorCode.NONE:
                response.protocol_type = live.protocol_type
                response.protocol_name = live.protocol
            if self.answer_sync(member_id, response):
                self.arm_session(member_id, member.session_timeout_ms)

    def complete_sync(self, assignments: Mapping[str, bytes]) -> None:
        """The leader has assigned: write it down, hand it out, be Stable."""
        self.hand_out(assignments)
        self.store()
        self.live.enter(GroupState.STABLE, self.now_ms)

    def synced(self, member_id: str) -> None:
        """A member has asked for its assignment; when all have, no timer is needed."""
        self.live.pending_syncs.pop(member_id, None)
        if not self.live.pending_syncs:
            self._cancel(TimerKind.SYNC_PHASE)

    def sync_phase_over(self, generation: int) -> None:
        """Members that have not asked for their assignment in time are out."""
        live = self.live
        complete = live.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        if generation != live.generation or not complete or not live.pending_syncs:
            return
        for member_id in list(live.pending_syncs):
            live.remove(member_id)
            self.cancel_session(member_id)
        self.prepare()
