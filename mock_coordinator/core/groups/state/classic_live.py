"""The in-memory half of a classic group: its members between and in generations.

Decisions work on a ``copy``; the coordinator replaces the group's live half by it when the decision
is complete, so a request that fails half-way leaves no trace. Members are immutable values.

``awaiting_join`` and ``awaiting_sync`` are the members' unanswered requests. A member whose
connection was lost continues to wait: the coordinator cannot know, and a rebalance counts it as
joined until its session ends (KIP-62, and as in Kafka).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kip848_client.core.assignors import string_map_order
from mock_coordinator.core.groups.records.consumer_protocol import subscribed_topics
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicProtocol,
)
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.inputs import RequestReceived

__all__ = ["CONSUMER_PROTOCOL_TYPE", "InitialDelay", "LiveGroup", "LiveMember"]

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type whose metadata the coordinator can read, a little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMember:
    """A member; ``protocols`` are all it offers, its favourite first."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    assignment: bytes = b""
    is_new: bool = False
    """It joined and has not been answered yet, so it cannot heartbeat."""
    awaiting_join: RequestReceived | None = None
    awaiting_sync: RequestReceived | None = None

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for a protocol; nothing for one that it does not offer."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether it need not heartbeat just now: it waits for the coordinator, not vice versa."""
        waiting = self.awaiting_join is not None or self.awaiting_sync is not None
        return waiting and not self.is_new


class InitialDelay(NamedTuple):
    """How an empty group waits for company (KIP-134): this long now, so long at most after it."""

    delay_ms: int
    remaining_ms: int


@dataclass(slots=True, kw_only=True)
class LiveGroup:
    """The group at work. ``pending_joins`` were given a member id and are expected back with it;
    ``pending_syncs`` have not asked for their assignment yet. Both are ordered."""

    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    state_timestamp_ms: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    generation: int = 0
    leader: str | None = None
    members: dict[str, LiveMember] = field(default_factory=dict[str, LiveMember])
    static_members: dict[str, str] = field(default_factory=dict[str, str])
    peak_size: int = 0
    """The most members that there ever were: Kafka's hash map does not shrink."""
    pending_joins: dict[str, None] = field(default_factory=dict[str, None])
    pending_syncs: dict[str, None] = field(default_factory=dict[str, None])
    subscribed_topics: frozenset[str] | None = None
    """By all members of the last generation; None when that is not known."""
    new_member_added: bool = False
    initial_delay: InitialDelay | None = None

    @classmethod
    def loaded(cls, stored: ClassicGeneration) -> LiveGroup:
        """The group as a broker has it that has just read its record."""
        live = cls(
            state=GroupState.STABLE if stored.members else GroupState.EMPTY,
            state_timestamp_ms=stored.state_timestamp_ms,
            protocol_type=stored.protocol_type or None,
            protocol=stored.protocol,
            generation=stored.generation,
            leader=stored.leader,
        )
        for member in stored.members:
            live.put(_loaded_member(stored, member))
        live.subscribed_topics = live.known_topics()
        return live

    def copy(self) -> LiveGroup:
        """A group that can be changed without changing this one."""
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            pending_joins=dict(self.pending_joins),
            pending_syncs=dict(self.pending_syncs),
        )

    def stored(self) -> ClassicGeneration:
        """What is written down of the group as it is now, members in the order of Kafka's table."""
        return ClassicGeneration(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            state_timestamp_ms=self.state_timestamp_ms,
            members=tuple(
                ClassicGroupMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(self.protocol),
                    assignment=member.assignment,
                )
                for member in self.in_order()
            ),
        )

    # --- Questions --------------------------------------------------------------------------------

    def in_order(self) -> Iterator[LiveMember]:
        """The members in the order of Kafka's hash map of them, which decides who follows a leader
        that goes, and in which order members are listed and written down."""
        return (self.members[each] for each in string_map_order(self.members, self.peak_size))

    @property
    def uses_consumer_protocol(self) -> bool:
        """Whether the members are consumers."""
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def awaiting_joins(self) -> int:
        """How many members wait for the end of the join phase."""
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def has_all_joined(self) -> bool:
        """Whether all members are there in the join phase."""
        return not self.pending_joins and all(
            member.awaiting_join is not None for member in self.members.values()
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of all members'."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Iterable[ClassicProtocol]) -> bool:
        """Whether a member that offers these protocols fits in: all others have one of them,
        too."""
        names = list(dict.fromkeys(each.name for each in protocols))
        if self.state is GroupState.EMPTY:
            return bool(protocol_type and names)
        if protocol_type != self.protocol_type:
            return False
        supporters = self._supporters()
        return any(supporters.get(name, 0) == len(self.members) for name in names)

    def elected_protocol(self) -> str | None:
        """The protocol with the most votes of those that all members offer; each votes for the
        first of its own. Among equals the first in the order of a Java hash map."""
        supporters = self._supporters()
        common = {name for name, count in supporters.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.in_order():
            vote = next((each.name for each in member.protocols if each.name in common), None)
            if vote is not None:
                votes[vote] = votes.get(vote, 0) + 1
        return max(string_map_order(votes), key=votes.__getitem__, default=None)

    def _supporters(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for member in self.members.values():
            for protocol in member.protocols:
                counts[protocol.name] = counts.get(protocol.name, 0) + 1
        return counts

    def known_topics(self) -> frozenset[str] | None:
        """The topics that the members subscribe to; ``None`` if they are not consumers, have no
        common protocol yet, or have unreadable metadata."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            names = subscribed_topics(member.metadata(self.protocol))
            if names is None:
                return None
            topics.update(names)
        return frozenset(topics)

    # --- Changes ----------------------------------------------------------------------------------

    def enter(self, state: GroupState, now_ms: int) -> None:
        """Come into another state (or the same, again)."""
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now_ms

    def put(self, member: LiveMember) -> None:
        """Add a member, or replace the one with its id. The first one decides the leader."""
        self.members[member.member_id] = member
        self.peak_size = max(self.peak_size, len(self.members))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.pending_joins.pop(member.member_id, None)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Forget a member, or an id that was expected; the first of the others leads then."""
        member = self.members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next((each.member_id for each in self.in_order()), None)
        self.pending_joins.pop(member_id, None)
        self.pending_syncs.pop(member_id, None)

    def rename(self, old_id: str, new_id: str) -> LiveMember:
        """Give a static member another id: the old one is unknown from then on."""
        member = self.members.pop(old_id)
        renamed = replace(
            member, member_id=new_id, is_new=False, awaiting_join=None, awaiting_sync=None
        )
        if self.leader == old_id:
            self.leader = new_id
        self.put(renamed)
        return renamed

    def next_generation(self, now_ms: int) -> None:
        """Close the join phase: with members there is an assignment to wait for."""
        self.generation += 1
        self.protocol = self.elected_protocol()
        self.subscribed_topics = self.known_topics()
        complete = GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY
        self.enter(complete, now_ms)
        self.pending_syncs.clear()


def _loaded_member(stored: ClassicGeneration, member: ClassicGroupMember) -> LiveMember:
    rebalance_timeout_ms = member.rebalance_timeout_ms
    if rebalance_timeout_ms == -1:
        rebalance_timeout_ms = member.session_timeout_ms
    return LiveMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocols=(ClassicProtocol(stored.protocol or "", member.subscription),),
        assignment=member.assignment,
    )
