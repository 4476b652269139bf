"""Requests of a classic group's clients: join, sync, heartbeat, leave; right and wrong ones."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.differential._classic_clients import ClassicClient, ClassicModel
from tests.differential._consumer_protocol import assigned, assignment, subscription
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Send

__all__ = ["LONG_MS", "OUTSIDER_CHANNEL", "ClassicRequests"]

LONG_MS: Final = 120_000  # longer than any sequence: no timer decides an answer
OUTSIDER_CHANNEL: Final = 0
_ASSIGNORS: Final = ("range", "roundrobin", "cooperative-sticky")
_STATIC_SHARE: Final = 0.3


class ClassicRequests:
    """Builds requests for one group. ``rebalance_ms`` is the rebalance timeout that members ask
    for, ``session_ms`` their session timeout."""

    def __init__(
        self,
        state: SequenceState,
        group: ClassicModel,
        rebalance_ms: int = LONG_MS,
        session_ms: int = LONG_MS,
    ) -> None:
        self._state = state
        self._group = group
        self.rebalance_ms = rebalance_ms
        self.session_ms = session_ms
        self.type = "consumer"
        self.owns_what_it_got = False
        """Members say in their subscription that they own what they were assigned last."""
        self._user_data = state.rng.random() < 0.1

    # -- joining -----------------------------------------------------------------------------------

    def prepare(self, client: ClassicClient) -> None:
        """Draw what a client is about: its topics, its protocols."""
        rng = self._state.rng
        client.names = tuple(dict.fromkeys(self._state.some_names(allow_empty=True)))
        names = rng.sample(_ASSIGNORS, rng.choice([1, 1, 2, 3]))
        if "range" not in names and rng.random() < 0.8:
            names.append("range")
        client.protocols = tuple((name, self._metadata(client)) for name in names)

    def _metadata(self, client: ClassicClient) -> bytes:
        rng = self._state.rng
        owned: dict[str, list[int]] = {}
        if self.owns_what_it_got:
            owned = assigned(client.assignment) if rng.random() < 0.8 else {}
        elif rng.random() < 0.2:
            owned = {name: [0] for name in client.names[:1]}
        user_data = rng.choice([b"", b"user"]) if self._user_data else None
        return subscription(
            rng.randrange(4),
            client.names,
            user_data=user_data,
            owned=owned,
            generation=client.generation,
            rack=rng.choice([None, None, "rack-1"]),
        )

    def join(self, client: ClassicClient, action: str = "join", **changes: Any) -> Send:
        """A JoinGroup of a client as it is; ``changes`` are fields that are to be otherwise."""
        state = self._state
        if self.owns_what_it_got:
            names = [name for name, _ in client.protocols]
            client.protocols = tuple((name, self._metadata(client)) for name in names)
        fields: dict[str, Any] = {
            "group_id": self._group.group_id,
            "session_timeout_ms": self.session_ms,
            "rebalance_timeout_ms": self.rebalance_ms,
            "member_id": client.member_id,
            "protocol_type": self.type,
            "protocols": tuple(
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in client.protocols
            ),
            **changes,
        }
        version = state.version("JoinGroup")
        if self.rebalance_ms != self.session_ms:
            version = max(
                version, 1
            )  # before, the session's timeout was that of the rebalance, too
        if client.instance_id is not None or "group_instance_id" in changes:
            fields.setdefault("group_instance_id", client.instance_id)
            version = max(version, 5)
        if version >= 8 and state.rng.random() < 0.2:
            fields["reason"] = "because"
        return Send(action, JoinGroupRequest(**fields), version, client.channel)

    def join_wrong(self, client: ClassicClient) -> Send:
        """A JoinGroup with a fault."""
        rng = self._state.rng
        changes: dict[str, Any] = rng.choice(
            [
                {"session_timeout_ms": rng.choice([1, 1_800_001, -5])},
                {"group_id": ""},
                {"member_id": rng.choice(["ghost", *self._group.gone])},
                {"protocol_type": rng.choice(["connect", ""])},
                {"protocols": ()},
                {"protocols": (JoinGroupRequestProtocol(name="own", metadata=b"own"),)},
                {"protocols": (JoinGroupRequestProtocol(name="range", metadata=b""),)},
                {"group_instance_id": rng.choice(["i1", "i2", "i9", "", ".."])},
            ]
        )
        if "protocol_type" in changes:
            changes["protocols"] = (JoinGroupRequestProtocol(name="own", metadata=b"own"),)
        return self.join(client, "join-wrong", **changes)

    # -- syncing -----------------------------------------------------------------------------------

    def sync(self, client: ClassicClient, action: str = "sync", **changes: Any) -> Send:
        """A SyncGroup; a leader's has assignments, mostly for everybody."""
        state = self._state
        rng = state.rng
        given: list[SyncGroupRequestAssignment] = []
        if client.is_leader:
            fellows = list(client.fellows)
            if rng.random() < 0.1:
                fellows = rng.sample(fellows, rng.randrange(len(fellows) + 1))
            if rng.random() < 0.05:
                fellows.append("ghost")
            given = [
                SyncGroupRequestAssignment(member_id=each, assignment=self._assignment())
                for each in fellows
            ]
        fields: dict[str, Any] = {
            "group_id": self._group.group_id,
            "generation_id": client.generation,
            "member_id": client.member_id,
            "assignments": tuple(given),
            **changes,
        }
        version = state.version("SyncGroup")
        if client.instance_id is not None:
            fields.setdefault("group_instance_id", client.instance_id)
            version = max(version, 3)
        if version >= 5:  # since then they are obligatory
            protocol = client.protocols[0][0] if len(client.protocols) == 1 else "range"
            fields.setdefault("protocol_type", self.type)
            fields.setdefault("protocol_name", rng.choice([protocol, protocol, "range", None]))
        return Send(action, SyncGroupRequest(**fields), version, client.channel)

    def _assignment(self) -> bytes:
        rng = self._state.rng
        if rng.random() < 0.1:
            return rng.choice([b"", b"own"])
        topic = self._state.some_topic()
        numbers = rng.sample(range(topic.partitions), min(topic.partitions, 2))
        return assignment(rng.randrange(4), {topic.name: sorted(numbers)})

    def sync_wrong(self, client: ClassicClient) -> Send:
        """A SyncGroup with a fault."""
        rng = self._state.rng
        changes: dict[str, Any] = rng.choice(
            [
                {"generation_id": client.generation + rng.choice([-1, 1])},
                {"member_id": rng.choice(["ghost", "", *self._group.gone])},
                {"protocol_type": "connect"},
                {"protocol_name": "unheard-of"},
                {"group_id": rng.choice(["", f"{self._group.group_id}-absent"])},
            ]
        )
        return self.sync(client, "sync-wrong", **changes)

    # -- living ------------------------------------------------------------------------------------

    def heartbeat(self, client: ClassicClient, action: str = "heartbeat", **changes: Any) -> Send:
        """A Heartbeat."""
        state = self._state
        fields: dict[str, Any] = {
            "group_id": self._group.group_id,
            "generation_id": client.generation,
            "member_id": client.member_id,
            **changes,
        }
        version = state.version("Heartbeat")
        if fields.get("group_instance_id", client.instance_id) is not None:
            fields.setdefault("group_instance_id", client.instance_id)
            version = max(version, 3)
        return Send(action, HeartbeatRequest(**fields), version, client.channel)

    def heartbeat_wrong(self, client: ClassicClient) -> Send:
        """A Heartbeat with a fault."""
        rng = self._state.rng
        changes: dict[str, Any] = rng.choice(
            [
                {"generation_id": client.generation + rng.choice([-1, 1])},
                {"member_id": rng.choice(["ghost", "", *self._group.gone])},
                {"group_instance_id": rng.choice(["i1", "i2", "i9"])},
                {"group_id": rng.choice(["", f"{self._group.group_id}-absent"])},
            ]
        )
        return self.heartbeat(client, "heartbeat-wrong", **changes)

    def leave(self, client: ClassicClient) -> Send:
        """A client leaves by itself."""
        state = self._state
        version = state.version("LeaveGroup")
        if client.instance_id is not None:
            version = max(version, 3)
        if version < 3:
            message = LeaveGroupRequest(group_id=self._group.group_id, member_id=client.member_id)
        else:
            message = self._leave_of([(client.member_id, client.instance_id)])
        return Send("leave", message, version, client.channel)

    def remove(self) -> Send:
        """A tool removes some members, those that exist and others."""
        rng = self._state.rng
        known = [
            rng.choice([(each.member_id, None), ("", each.instance_id), each_pair])
            for each in self._group.clients
            for each_pair in [(each.member_id, each.instance_id)]
        ]
        strange = [("ghost", None), ("", "i9"), ("ghost", "i1"), ("", None)]
        chosen = rng.sample(known, min(len(known), rng.randrange(3)))
        if not chosen or rng.random() < 0.3:
            chosen.append(rng.choice(strange))
        version = max(3, self._state.version("LeaveGroup"))
        return Send("remove", self._leave_of(chosen), version, OUTSIDER_CHANNEL)

    def _leave_of(self, members: list[tuple[str, str | None]]) -> LeaveGroupRequest:
        return LeaveGroupRequest(
            group_id=self._group.group_id,
            members=tuple(
                LeaveGroupRequestMemberIdentity(member_id=member_id, group_instance_id=instance_id)
                for member_id, instance_id in members
            ),
        )

    def new_client(self) -> ClassicClient:
        """A client that has done nothing yet; it may be static, under an id that is in use."""
        rng = self._state.rng
        channel = 1 + len(self._group.clients)
        client = ClassicClient(channel)
        if rng.random() < _STATIC_SHARE:
            client.instance_id = rng.choice(["i1", "i2", "i3"])
        self._group.clients.append(client)
        self.prepare(client)
        return client
