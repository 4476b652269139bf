"""The bundled coordinator as what a scenario is played on: virtual time, and looks inside.

After every step the groups are rebuilt from the records and must be the same, so each scenario
also shows that a crash at any of its points loses nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kip848_client.core.types import TopicId, format_topic_id
from kip848_client.core.wire import decode, encode
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.groups import GroupCoordinator, GroupType, StateRecord
from mock_coordinator.core.inputs import ClientInfo, Input, RequestReceived, TimerFired
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.settings.broker_config import BrokerConfig
from tests.scenarios.admin import create_topic, delete_topic, grow_topic
from tests.scenarios.given_ids import GivenIds, asks_for_an_id
from tests.scenarios.scenario_run import GroupView

__all__ = ["CoreBackend"]

_START_MS: Final = 1_700_000_000_000
"""Virtual time starts at a date, as a broker's does: 0 means "never" in some records."""
_CLIENT: Final = ClientInfo("kip848-tests")
"""The client id of every test: member ids begin with it."""
_ADMIN: Final = 1
"""The connection of everything that does not wait."""


class CoreBackend:
    """One fresh broker. ``given_ids`` overrides the ids that it would choose itself."""

    def __init__(
        self,
        profile: str,
        settings: Mapping[str, str],
        *,
        given_ids: GivenIds | None = None,
    ) -> None:
        self.profile = profile
        self._now_ms = _START_MS
        self._given = given_ids
        self._topic_ids = None if given_ids is None else list(given_ids.topics)
        self._member_uuid: bytes | None = None
        self._numbers = itertools.count(1)
        # one partition, as on the real broker: its log is what a fresh coordinator replays
        one = {"offsets.topic.num.partitions": "1"}
        self._config = BrokerConfig(profile_named(profile), {**one, **settings})
        self._correlations = itertools.count(_ADMIN + 1)
        self._replies: dict[int, Reply] = {}
        self._senders: dict[str, int] = {}
        self._connections: dict[int, str] = {}
        self._waiting: dict[str, int] = {}
        self._core = ClusterCore.create(self._config, self._new_uuid, self._now_ms)

    def _new_uuid(self) -> bytes:
        if self._member_uuid is not None:
            given, self._member_uuid = self._member_uuid, None
            return given
        return (0xC0FFEE << 64 | next(self._numbers)).to_bytes(16, "big")

    # requests

    def request(self, message: Any, version: int) -> Any:
        # Through bytes and back, because a version may not carry every field.
        received = decode(type(message), version, encode(message, version))
        event = RequestReceived(_ADMIN, next(self._correlations), version, _CLIENT, received)
        self._step(event)
        reply = self._replies.pop(_ADMIN)
        assert reply.correlation == event.correlation, reply
        return _read(reply)

    def send(self, sender: str, message: Any, version: int) -> Any:
        received = decode(type(message), version, encode(message, version))
        if sender in self._waiting:
            del self._connections[self._waiting.pop(sender)], self._senders[sender]
        connection = self._senders.setdefault(sender, next(self._correlations))
        self._connections[connection] = sender
        if self._given is not None and asks_for_an_id(message):
            self._member_uuid = self._given.next_member()
        self._step(RequestReceived(connection, 1, version, _CLIENT, received))
        self._member_uuid = None
        reply = self._replies.pop(connection, None)
        if reply is None:
            self._waiting[sender] = connection
        return None if reply is None else _read(reply)

    def expect(self, senders: Collection[str]) -> None:
        """Nothing: in virtual time everybody is answered at once, or waits."""

    def late_answers(self) -> list[tuple[str, Any]]:
        came = [(self._connections.get(each), reply) for each, reply in self._replies.items()]
        self._replies.clear()
        known = [(sender, _read(reply)) for sender, reply in came if sender is not None]
        for sender, _ in known:
            del self._waiting[sender]
        return known

    def _step(self, event: Input) -> None:
        for output in self._core.step(self._now_ms, event):
            assert isinstance(output, Reply), output
            self._replies[output.connection] = output
        self._check_replay()

    def create_topic(self, name: str, partitions: int, topic_id: TopicId) -> TopicId:
        given = topic_id if self._topic_ids is None else self._topic_ids.pop(0)
        configs = {"mock.topic.id": format_topic_id(given)}
        assert create_topic(self, name, partitions, configs) == given
        return given

    def grow_topic(self, name: str, partitions: int) -> None:
        grow_topic(self, name, partitions)

    def delete_topic(self, name: str) -> None:
        delete_topic(self, name)

    # time

    def advance(self, duration_ms: int) -> None:
        end_ms = self._now_ms + duration_ms
        while (deadline_ms := self._core.deadline_ms) is not None and deadline_ms <= end_ms:
            self._now_ms = max(self._now_ms, deadline_ms)
            self._step(TimerFired())
        self._now_ms = end_ms

    def settle(self) -> None:
        """A step ends with the background work that it asked for."""

    def crash(self) -> None:
        self._core = self._core.restarted(self._now_ms)
        self._senders.clear()
        self._connections.clear()
        self._waiting.clear()

    # looks inside

    def log(self) -> Sequence[StateRecord]:
        return self._core.groups.records

    def timers(self, group: str) -> list[str]:
        snapshot = self._core.groups.snapshot(group)
        lines: list[str] = []
        for name, member in sorted((snapshot.members if snapshot else {}).items()):
            deadlines = {
                "session": member.session_deadline_ms,
                "rebalance": member.rebalance_deadline_ms,
                "join": member.join_deadline_ms,
                "sync": member.sync_deadline_ms,
            }
            running = [
                f"{kind} {deadline_ms - self._now_ms} ms"
                for kind, deadline_ms in deadlines.items()
                if deadline_ms is not None
            ]
            lines.append(f"{name}: {', '.join(running) or 'none'}")
        return lines

    def check(self, group: str, view: GroupView | None) -> None:
        snapshot = self._core.groups.snapshot(group)
        if snapshot is None or snapshot.type is GroupType.CLASSIC:
            assert view is None, view
            return
        assert view is not None, snapshot
        own = (snapshot.state, snapshot.epoch, snapshot.assignment_epoch)
        assert own == (view.state, view.epoch, view.assignment_epoch), (snapshot, view)

    def _check_replay(self) -> None:
        groups = self._core.groups
        again = GroupCoordinator.replay(
            self._config.profile,
            self._config,
            self._core.broker.catalog,
            lambda: "unused",
            groups.records,
            self._now_ms,
        )
        assert again.group_ids == groups.group_ids
        for group_id in groups.group_ids:
            live, rebuilt = groups.snapshot(group_id), again.snapshot(group_id)
            assert live is not None
            assert rebuilt is not None
            assert rebuilt.without_timers() == live.without_timers(), "replay differs"


def _read(reply: Reply) -> Any:
    """The response as a client reads it; fields that the version does not have are lost."""
    raw = encode(reply.response, reply.version)
    return decode(type(reply.response), reply.version, raw)
