"""Faults at a broker, in process and in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError, TransportError
from mock_coordinator import MockBroker
from mock_coordinator.core.faults import (
    Action,
    Answer,
    CorruptBatch,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Fault,
    FaultInjector,
    Match,
    Moment,
    Refuse,
    Throttle,
)
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.driver.clock import VirtualClock

JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="A",
    rebalance_timeout_ms=1000,
    subscribed_topic_names=("t",),
    topic_partitions=(),
)
HEARTBEATS = Match(api="ConsumerGroupHeartbeat")


def broker(*faults: Fault) -> MockBroker:
    made = MockBroker({"t": 2}, listen=False, clock=VirtualClock())
    made.faults.add(*faults)
    return made


def epoch_of(made: MockBroker) -> int | None:
    group = made.snapshot("g")
    return None if group is None else group.members["A"].epoch


def test_an_error_instead_of_an_answer() -> None:
    made = broker(Fault(Refuse(ErrorCode.NOT_COORDINATOR), HEARTBEATS, times=2))
    connection = made.connect()
    for code in (16, 16, 0):
        assert connection.ask(JOIN).error_code == code
    assert [hit.api for hit in made.faults.hits] == ["ConsumerGroupHeartbeat"] * 2
    assert made.faults.waiting == ()


def test_topics_are_looked_up_only_for_faults_that_ask_for_them() -> None:
    asked = 0

    def topic_names() -> dict[bytes, str]:
        nonlocal asked
        asked += 1
        return {bytes(15) + b"\1": "t"}

    event = RequestReceived(1, 1, 12, LOCAL_CLIENT, MetadataRequest(topics=None))
    injector = FaultInjector(topic_names)
    injector.add(
        Fault(Refuse(ErrorCode.NOT_COORDINATOR), Match(api="Fetch", topic="t")),
        Fault(Refuse(ErrorCode.NOT_COORDINATOR), Match(group_id="g")),
    )
    injector.step(0, event, lambda _now, _event: ())
    assert asked == 0
    injector.add(Fault(Drop(), Match(topic="u")), Fault(Drop(), Match(partition=3)))
    injector.step(0, event, lambda _now, _event: ())
    assert asked == 1, "once for both"


def test_the_nth_request_and_no_other() -> None:
    made = broker(Fault(Refuse(ErrorCode.UNKNOWN_MEMBER_ID), HEARTBEATS, nth=3))
    connection = made.connect()
    assert [connection.ask(JOIN).error_code for _ in range(4)] == [0, 0, 25, 0]


@pytest.mark.parametrize(
    "match",
    [
        Match(group_id="other"),
        Match(member_id="B"),
        Match(client_id="somebody"),
        Match(api="Metadata"),
        Match(versions=(0, 0)),
        Match(node_id=7),
        Match(topic="u"),
        Match(topic="t", partition=0),
    ],
)
def test_others_are_left_alone(match: Match) -> None:
    made = broker(Fault(Refuse(ErrorCode.NOT_COORDINATOR), match, times=None))
    assert made.connect().ask(JOIN).error_code == 0
    assert made.faults.hits == ()


@pytest.mark.parametrize(
    "match", [Match(group_id="g"), Match(member_id="A"), Match(topic="t"), Match(versions=(1, 1))]
)
def test_those_that_are_meant_are_hit(match: Match) -> None:
    assert (
        broker(Fault(Refuse(ErrorCode.NOT_COORDINATOR), match)).connect().ask(JOIN).error_code
        == ErrorCode.NOT_COORDINATOR
    )


def test_an_answer_of_your_own() -> None:
    answer = MetadataResponse(controller_id=77)
    made = broker(Fault(Answer(answer), Match(api="Metadata")))
    assert made.connect().ask(MetadataRequest(topics=None)).controller_id == 77


@pytest.mark.parametrize(
    ("action", "joined"),
    [
        (Drop(Moment.REQUEST), False),
        (Drop(Moment.RESPONSE), True),
        (Disconnect(Moment.REQUEST), False),
        (Disconnect(Moment.RESPONSE), True),
        (Disconnect(Moment.RESPONSE, after_bytes=9), True),
    ],
)
def test_what_is_lost_and_what_has_happened(action: Action, joined: bool) -> None:
    made = broker(Fault(action, HEARTBEATS))
    connection = made.connect()
    if isinstance(action, Drop):
        assert connection.ask(JOIN) is None
    else:
        with pytest.raises(TransportError):
            connection.ask(JOIN)
        assert connection.is_closed
    assert (epoch_of(made) is not None) is joined


@pytest.mark.asyncio
@pytest.mark.parametrize(("moment", "at_once"), [(Moment.REQUEST, None), (Moment.RESPONSE, 2)])
async def test_a_delay(moment: Moment, at_once: int | None) -> None:
    made = broker(Fault(Delay(500, moment), HEARTBEATS))
    connection = made.connect()
    with pytest.raises(TransportError, match="no response yet"):
        connection.ask(JOIN)
    made.advance(499)
    assert epoch_of(made) == at_once
    made.advance(1)
    assert epoch_of(made) == 2


def test_throttling_holds_the_next_request_of_the_connection_back() -> None:
    made = broker(Fault(Throttle(300), HEARTBEATS))
    connection, other = made.connect(), made.connect()
    assert connection.ask(JOIN).throttle_time_ms == 300
    with pytest.raises(TransportError, match="no response yet"):
        connection.ask(MetadataRequest(topics=None))
    assert other.ask(MetadataRequest(topics=None)).error_code == 0
    made.advance(300)
    assert connection.ask(MetadataRequest(topics=None)).error_code == 0


def test_a_request_that_arrives_twice() -> None:
    made = broker(Fault(Duplicate(), HEARTBEATS))
    connection = made.connect()
    connection.ask(JOIN)
    leave = ConsumerGroupHeartbeatRequest(group_id="g", member_id="A", member_epoch=-1)
    made.faults.add(Fault(Duplicate(), HEARTBEATS))
    answer = connection.ask(leave)
    assert (answer.error_code, answer.member_epoch) == (0, -1), "the first answer of the two"
    assert connection.ask(leave).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_batch_that_arrives_damaged() -> None:
    made = broker()
    made.produce("t", b"one", b"two")

    def topic(*partitions: int) -> FetchRequestFetchTopic:
        rows = [
            FetchRequestFetchPartition(partition=each, partition_max_bytes=1_000_000)
            for each in partitions
        ]
        return FetchRequestFetchTopic(topic="t", partitions=tuple(rows))

    request = FetchRequest(max_wait_ms=0, max_bytes=1_000_000, topics=(topic(0),))

    def fetched() -> bytes:
        answer: Any = made.connect().ask(request, 12)
        return bytes(answer.responses[0].partitions[0].records)

    whole = fetched()
    made.faults.add(Fault(CorruptBatch(), Match(api="Fetch", topic="t", partition=0)))
    damaged = fetched()
    assert damaged != whole
    assert len(damaged) == len(whole)
    assert fetched() == whole
    for elsewhere in (Match(api="Fetch", partition=1), Match(topic="u")):
        made.faults.add(Fault(CorruptBatch(), elsewhere))
    request = replace(request, topics=(topic(0, 1), FetchRequestFetchTopic(topic="u")))
    assert fetched() == whole, "other partitions were meant"
    assert len(made.faults.hits) == 2


def test_the_first_fault_that_hits_happens_and_all_count() -> None:
    made = broker(
        Fault(Refuse(ErrorCode.NOT_COORDINATOR), HEARTBEATS),
        Fault(Refuse(ErrorCode.UNKNOWN_MEMBER_ID), HEARTBEATS, nth=2),
    )
    connection = made.connect()
    assert [connection.ask(JOIN).error_code for _ in range(3)] == [16, 25, 0]


def test_removing_and_clearing() -> None:
    always = [Fault(Refuse(code), times=None, name=name) for code, name in ((16, "a"), (25, "b"))]
    made = broker(*always)
    made.faults.remove("a")
    assert made.connect().ask(JOIN).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    made.faults.clear()
    assert made.connect().ask(JOIN).error_code == 0
    with pytest.raises(KeyError):
        made.faults.remove("a")


def test_a_long_run_keeps_the_newest_hits() -> None:
    made = broker(Fault(Refuse(ErrorCode.NOT_COORDINATOR), HEARTBEATS, times=None))
    connection = made.connect(through_bytes=False)
    for _ in range(10_050):
        connection.ask(JOIN)
    assert len(made.faults.hits) == 10_000
    assert made.faults.hits[0].correlation == 51


@pytest.mark.parametrize("wrong", [{"match": {}, "drop": "request"}, Drop(), "drop", None])
def test_what_is_no_fault_is_refused_before_it_can_hit(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="expected a Fault"):
        MockBroker(listen=False).faults.add(wrong)


@pytest.mark.parametrize("wrong", [(Drop, Match()), (Drop(), {"api": "Fetch"}), (None, Match())])
def test_a_fault_of_the_wrong_things_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="expected an action and a Match"):
        Fault(*wrong)


@pytest.mark.parametrize(
    ("action", "api", "problem"),
    [
        (Refuse(99_999), "Fetch", "99999 is not an error code"),
        (CorruptBatch(), "Produce", "only the batches of a Fetch"),
        (Disconnect(Moment.REQUEST, 5), "Fetch", "after_bytes needs Moment.RESPONSE"),
        (Disconnect(after_bytes=-1), "Fetch", "-1 is negative"),
        (Delay(-2), "Fetch", "-2 is negative"),
        (Throttle(-3), "Fetch", "-3 is negative"),
    ],
)
def test_a_fault_that_could_never_happen_is_refused(action: Action, api: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Fault(action, Match(api=api))
