"""A coordinator and people of the classic protocol, each known by name, in virtual time.

``join("A")`` and ``sync("A")`` return the answer, or None while it has to wait; ``late()`` gives
the answers that came since, by name. ``A`` is given a member id as a real client is: refused once
(MEMBER_ID_REQUIRED) where the version wants that, and let in under the id.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.groups.classic.snapshot import ClassicSnapshot
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerSubscription,
    write_subscription,
)
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

__all__ = ["ClassicGroupHarness", "wants"]

NEWEST: Final[Mapping[type, int]] = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4}


def wants(*topics: str) -> bytes:
    """A consumer's subscription."""
    return write_subscription(ConsumerSubscription(topics=topics))


class ClassicGroupHarness:
    """See the module. ``delay_ms`` is the initial rebalance delay."""

    def __init__(self, profile: str = "4.4", *, delay_ms: int = 0) -> None:
        self._numbers = itertools.count(1)
        self.consumers = GroupHarness(profile, group_initial_rebalance_delay_ms=delay_ms)
        self._draw = itertools.count(1)
        self.restart()  # so that member ids can be told apart
        self.ids: dict[str, str] = {}
        self.generations: dict[str, int] = {}
        self._asked: dict[int, str] = {}
        self._came: dict[str, Any] = {}

    @property
    def groups(self) -> GroupCoordinator:
        return self.consumers.groups

    @property
    def now(self) -> Classic:
        """The group ``g``."""
        return Classic(self.consumers)

    def restart(self) -> None:
        """The coordinator is replaced; all that it has are the records."""
        consumers = self.consumers
        consumers.groups = GroupCoordinator.replay(
            consumers.profile,
            consumers.config,
            consumers.catalog,
            lambda: f"id{next(self._draw)}",
            consumers.groups.records,
            consumers.now,
        )

    def pass_ms(self, milliseconds: int) -> None:
        self.consumers.pass_ms(milliseconds)
        self._take()

    def send(self, name: str, request: Message, version: int | None = None) -> Any:
        """Any request, over a connection of its own; None when it waits."""
        version = NEWEST.get(type(request), 0) if version is None else version
        number = next(self._numbers)
        received = RequestReceived(
            number,
            number,
            version,
            ClientInfo(name),
            decode(type(request), version, encode(request, version)),
        )
        self._asked[number] = name
        answer = self.groups.handle(self.consumers.now, received)
        self.consumers.pass_ms(0)
        self._take()
        if answer is None and number not in self._asked:
            answer = self._came.pop(name)
        if answer is not None:
            encode(answer, version)  # what cannot be written is no answer
            self._asked.pop(number, None)
            self._note(name, answer)
        return answer

    def _take(self) -> None:
        for received, answer in self.groups.take_replies():
            name = self._asked.pop(received.connection)  # KeyError: it was answered before
            encode(answer, received.version)
            self._note(name, answer)
            self._came[name] = answer

    def _note(self, name: str, answer: Any) -> None:
        if isinstance(answer, JoinGroupResponse) and answer.error_code in (
            0,
            ErrorCode.MEMBER_ID_REQUIRED,
        ):
            self.ids[name] = answer.member_id
            self.generations[name] = answer.generation_id

    def forget_requests(self) -> None:
        """Nobody waits any more: the connections were lost with the coordinator."""
        self._asked.clear()

    def late(self) -> Mapping[str, Any]:
        """The answers that came late, by name; each is given once."""
        came, self._came = self._came, {}
        return came

    @property
    def waiting(self) -> list[str]:
        """Who has not been answered yet."""
        return sorted(self._asked.values())

    # --- Requests ---------------------------------------------------------------------------------

    def ask_to_join(
        self,
        name: str,
        *protocols: str,
        id_: str | None = None,
        instance: str | None = None,
        version: int = 9,
        topics: tuple[str, ...] = ("foo",),
        metadata: bytes | None = None,
        kind: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
    ) -> JoinGroupResponse | None:
        """One JoinGroup, with the id that is known."""
        said = wants(*topics) if metadata is None else metadata
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.ids.get(name, "") if id_ is None else id_,
            group_instance_id=instance,
            protocol_type=kind,
            protocols=tuple(
                JoinGroupRequestProtocol(name=each, metadata=said)
                for each in protocols or ("range",)
            ),
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
        )
        answer = self.send(name, request, version)
        assert answer is None or isinstance(answer, JoinGroupResponse)
        return answer

    def join(self, name: str, *protocols: str, **options: Any) -> JoinGroupResponse | None:
        """JoinGroup, and once more when an id was given."""
        answer = self.ask_to_join(name, *protocols, **options)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.ask_to_join(name, *protocols, **options)
        return answer

    def sync(
        self, name: str, assignments: Mapping[str, bytes] | None = None
    ) -> SyncGroupResponse | None:
        """SyncGroup; leaders give bytes to names."""
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generations.get(name, 0),
            member_id=self.ids.get(name, name),
            protocol_type=self.now.group.protocol_type or None,
            protocol_name=self.now.group.protocol,
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=self.ids[each], assignment=given)
                for each, given in (assignments or {}).items()
            ),
        )
        answer = self.send(name, request, 4)
        assert answer is None or isinstance(answer, SyncGroupResponse)
        return answer

    def beat(self, name: str, generation: int | None = None, instance: str | None = None) -> int:
        """Heartbeat; its error code."""
        request = HeartbeatRequest(
            group_id="g",
            generation_id=self.generations.get(name, 0) if generation is None else generation,
            member_id=self.ids.get(name, name),
            group_instance_id=instance,
        )
        code: int = self.send(name, request).error_code
        return code

    def leave(self, *names: str) -> list[int]:
        """LeaveGroup of all of them; the error codes. Those who wait do not know their ids yet."""
        known = {each.client_id: id_ for id_, each in self.now.group.members.items()} | self.ids
        members = tuple(
            LeaveGroupRequestMemberIdentity(member_id=known.get(name, name)) for name in names
        )
        answer = self.send("admin", LeaveGroupRequest(group_id="g", members=members), 5)
        return [each.error_code for each in answer.members]

    def stable(self, *names: str) -> None:
        """A group of these members, each assigned its own name."""
        for name in names:
            self.join(name, version=3)
        for name in names[:-1]:
            self.join(name)
        given = {name: name.encode() for name in names}
        for name in names[1:]:
            self.sync(name)
        self.sync(names[0], given)
        self.late()
        assert self.now.state == "Stable"
        assert sorted(self.now.group.members) == sorted(self.ids[name] for name in names)


class Classic:
    """A look at the group ``g``."""

    def __init__(self, consumers: GroupHarness) -> None:
        self._consumers = consumers

    @property
    def state(self) -> str:
        snapshot = self._consumers.groups.snapshot("g")
        return "Dead" if snapshot is None else snapshot.state

    @property
    def group(self) -> ClassicSnapshot:
        snapshot = self._consumers.groups.snapshot("g")
        assert snapshot is not None
        assert snapshot.classic is not None
        return snapshot.classic
