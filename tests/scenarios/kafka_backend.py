"""Apache Kafka as the oracle of the scenario files.

Time is real here: ``advance`` sleeps, so only files with short timers are played. Topic ids are the
broker's; whoever compares gives the same ids to the bundled coordinator. Group ids get a suffix per
scenario, and topics that a scenario creates the way others do (same name, same partitions) are
kept for the next one, because creating one takes half a second.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from kip848_client.core.types import TopicId
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator.core.groups.records.state_records import RegularExpression, StateRecord
from tests.scenarios.admin import grow_topic
from tests.scenarios.broker_log import BrokerLog
from tests.scenarios.given_ids import asks_for_an_id
from tests.scenarios.scenario_run import GroupView, Unplayable
from tests.support.real_kafka import RealKafka
from tests.support.wire_connection import WireConnection

__all__ = ["KafkaBackend", "KafkaSession"]

_SHARED_TOPICS: Final = {"foo": 6, "bar": 3}
_LATE_S: Final = 0.2
"""A broker's timers fire a little after they are due."""
_BACKGROUND_S: Final = 10.0
"""In this time a broker does what it does in the background, however busy the machine is."""
_LOOK_AGAIN_S: Final = 0.005
_PATIENCE_S: Final = 0.25
"""A member that is not answered in this time waits for others, if the file does not say that it is
answered: a busy machine may take longer."""
_LONG_PATIENCE_S: Final = 5.0
"""And if the file says so. No session ends in this time."""
_GLANCE_S: Final = 0.02
"""Somebody whom a command should not have answered: the command is done, an answer would be on its
way. One that comes later is found after the next command, or at the end."""


class KafkaSession:
    """What outlives a scenario on one broker: the connection, the log, the topics."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka
        self.connection = kafka.connect()
        self.log = BrokerLog(self.connection, kafka.version)
        self.topics: dict[str, tuple[int, TopicId]] = {}
        self._asked = 0

    def clear_topics(self) -> None:
        """Delete what the next scenario must not see."""
        for name, (partitions, _) in sorted(self.topics.items()):
            if _SHARED_TOPICS.get(name) != partitions:
                self.delete_topic(name)

    def create_topic(self, name: str, partitions: int) -> TopicId:
        known = self.topics.get(name)
        if known is not None and known[0] != partitions:
            self.delete_topic(name)
            known = None
        if known is None:
            known = (partitions, self.kafka.create_topic(name, partitions))
            self.topics[name] = known
        return known[1]

    def delete_topic(self, name: str) -> None:
        del self.topics[name]
        self.kafka.delete_topic(name)
        self.kafka._await_assignable(self.connection, name, 0)

    def grow_topic(self, name: str, partitions: int) -> None:
        grow_topic(self.connection, name, partitions)
        self.kafka._await_assignable(self.connection, name, partitions)
        self.topics[name] = (partitions, self.topics[name][1])

    def settle(self) -> None:
        """Wait until the coordinator has done its work in the background. One thread does it, so a
        group that asks for some now is served when all others are."""
        self._asked += 1
        asking = ConsumerGroupHeartbeatRequest(
            group_id=f"settling-{self._asked}",
            member_id="settling",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_regex="no-such-topic",
            topic_partitions=(),
        )
        seen = len(self.log.records)
        answer = self.connection.request(asking, 1)
        assert answer.error_code == 0, answer
        until = time.monotonic() + _BACKGROUND_S
        while not any(map(_resolved(asking.group_id), self.log.records[seen:])):
            assert time.monotonic() < until, "no expression was resolved"
            time.sleep(_LOOK_AGAIN_S)
            self.log.read()
        self.connection.request(dataclasses.replace(asking, member_epoch=-1), 1)

    def crash(self) -> None:
        """Kill the broker, start it again on its data and go on reading its log."""
        self.connection.close()
        self.kafka.restart(crash=True)
        self.connection = self.kafka.connect()
        self.log.connection = self.connection

    def close(self) -> None:
        self.connection.close()


def _resolved(group_id: str) -> Callable[[StateRecord], bool]:
    """Whether a record tells to which topics an expression of the group leads."""
    return lambda record: isinstance(record, RegularExpression) and record.group_id == group_id


class KafkaBackend:
    """One scenario on one broker. ``topic_ids`` and ``member_ids`` are those that it chose, in
    order of creation."""

    def __init__(self, session: KafkaSession) -> None:
        self._session = session
        self.profile = session.kafka.profile
        self.topic_ids: list[TopicId] = []
        self.member_ids: list[str | None] = []
        self._nameless: dict[str, int] = {}
        self._connections: dict[str, WireConnection] = {}
        self._waiting: dict[str, tuple[Any, int, int]] = {}
        self._expected: Collection[str] = ()

    def request(self, message: Any, version: int) -> Any:
        return self._session.connection.request(message, version)

    def send(self, sender: str, message: Any, version: int) -> Any:
        if sender in self._waiting:
            assert not self._connections[sender].has_answer(), f"{sender} was answered unnoticed"
            del self._waiting[sender]
            self._nameless.pop(sender, None)
            self._connections.pop(sender).close()
        connection = self._connections.get(sender)
        if connection is None:
            connection = self._connections[sender] = self._session.kafka.connect()
        correlation = connection.send(message, version)
        self._waiting[sender] = (message, version, correlation)
        if asks_for_an_id(message):
            self._nameless[sender] = len(self.member_ids)
            self.member_ids.append(None)
        if connection.has_answer(self._patience_s(sender)):
            return self._receive(sender)
        return None

    def expect(self, senders: Collection[str]) -> None:
        self._expected = senders

    def late_answers(self) -> list[tuple[str, Any]]:
        began = time.monotonic()
        came: list[tuple[str, Any]] = []
        for sender in tuple(self._waiting):
            patience_s = _LONG_PATIENCE_S if sender in self._expected else _GLANCE_S
            left_s = began + patience_s - time.monotonic()
            if self._connections[sender].has_answer(max(left_s, 0)):
                came.append((sender, self._receive(sender)))
        return came

    def require_nobody_answered(self) -> None:
        """At the end of a file: whoever waits in it waits indeed."""
        if self._waiting:
            time.sleep(_PATIENCE_S)
        came = [sender for sender in self._waiting if self._connections[sender].has_answer()]
        assert not came, f"{came} were answered after the last command"

    def _patience_s(self, sender: str) -> float:
        return _LONG_PATIENCE_S if sender in self._expected else _PATIENCE_S

    def _receive(self, sender: str) -> Any:
        message, version, correlation = self._waiting.pop(sender)
        answer = self._connections[sender].receive(request_api(message), version, correlation)
        place = self._nameless.pop(sender, None)
        if place is not None and answer.member_id:
            self.member_ids[place] = answer.member_id
        return answer

    def close(self) -> None:
        """Give up the members' connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._waiting.clear()
        self._nameless.clear()

    def create_topic(self, name: str, partitions: int, topic_id: TopicId) -> TopicId:
        del topic_id  # the broker chooses
        given = self._session.create_topic(name, partitions)
        self.topic_ids.append(given)
        return given

    def grow_topic(self, name: str, partitions: int) -> None:
        self._session.grow_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        self._session.delete_topic(name)

    def advance(self, duration_ms: int) -> None:
        time.sleep(duration_ms / 1000 + _LATE_S)

    def settle(self) -> None:
        self._session.settle()

    def crash(self) -> None:
        self.close()
        self._session.crash()

    def timers(self, group: str) -> list[str]:
        raise Unplayable(f"the timers of {group}")

    def log(self) -> Sequence[StateRecord]:
        self._session.log.read()
        return self._session.log.records

    def check(self, group: str, view: GroupView | None) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=(group,))
        answer = self._session.connection.request(request, 0).groups[0]
        if view is None:
            assert answer.error_code, f"{group} exists and is not in the log"
            return
        described = (answer.group_state, answer.group_epoch, answer.assignment_epoch)
        assert described == (view.state, view.epoch, view.assignment_epoch), (described, view)
