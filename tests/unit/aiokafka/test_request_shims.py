"""Requests and answers of ours in the shape of aiokafka's, and back."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.protocol import fetch as their_fetch
from aiokafka.protocol import produce as their_produce

from kip848_client.aiokafka._request_shims import FetchShim, ProduceShim, RequestShim
from kip848_client.aiokafka.errors import translated
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, RemoteProtocolError, RequestTimedOut

pytestmark = pytest.mark.asyncio
ID = TopicId(b"i" * 16)


class Names:
    def name_of(self, topic_id: TopicId) -> str | None:
        return "t" if topic_id == ID else None

    def id_of(self, topic: str) -> TopicId | None:
        return ID if topic == "t" else None


def fetch(answer: Any) -> Any:
    async def send() -> Any:
        return answer

    asked = FetchRequestFetchPartition(partition=1, fetch_offset=5, partition_max_bytes=9)
    request = FetchRequest(
        max_wait_ms=1,
        min_bytes=2,
        max_bytes=3,
        isolation_level=1,
        session_id=77,
        session_epoch=4,
        topics=(FetchRequestFetchTopic(topic_id=ID, partitions=(asked,)),),
        forgotten_topics_data=(),
        rack_id="r",
    )
    names: Any = Names()
    return FetchShim(request, send, translated, names)


def fetched(**changed: Any) -> FetchResponse:
    fields: dict[str, Any] = {
        "partition_index": 1,
        "error_code": 0,
        "high_watermark": 8,
        "last_stable_offset": 7,
        "log_start_offset": 6,
        "aborted_transactions": (FetchResponseAbortedTransaction(producer_id=3, first_offset=2),),
        "preferred_read_replica": 5,
        "current_leader": FetchResponseLeaderIdAndEpoch(leader_id=2, leader_epoch=9),
        "records": b"abc",
        **changed,
    }
    told = FetchResponsePartitionData(**fields)
    topic = FetchResponseFetchableTopicResponse(topic_id=ID, partitions=(told,))
    return FetchResponse(throttle_time_ms=0, error_code=0, session_id=77, responses=(topic,))


async def test_a_fetch_request_can_be_read_and_built_as_theirs() -> None:
    shim = fetch(None)
    assert their_fetch.FetchRequest in type(shim).__mro__
    assert shim.topics == [("t", [(1, 5, 9)])]
    built = shim.build(their_fetch.FetchRequest_v4)
    assert built.topics == shim.topics
    assert "fetch_offset=5" in repr(shim)


async def test_a_fetch_answer_that_nobody_looks_at_is_ours() -> None:
    answer = fetched()
    shim = fetch(answer)
    shim.returned = await shim.send()
    assert shim.returned.is_untouched
    assert shim.understood() is answer


async def test_a_fetch_answer_that_was_changed_keeps_what_has_no_column() -> None:
    shim = fetch(fetched())
    shown = shim.returned = await shim.send()
    row = (1, 0, 8, 7, 6, [(3, 2)], 5, b"abc")
    assert shown.get_item("topics") == [("t", [row])]
    assert shim.understood() == fetched()
    shown.topics[0][1][0] = (1, 6, 8, 7, 6, [], 5, b"")
    assert shim.understood() == fetched(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, aborted_transactions=(), records=b""
    )


@pytest.mark.parametrize(
    ("kind", "row", "told"),
    [
        ("FetchResponse_v0", (1, 0, 8, b"x"), {}),
        (
            "FetchResponse_v4",
            (1, 0, 8, 7, [(3, 2)], b"x"),
            {
                "last_stable_offset": 7,
                "aborted_transactions": (
                    FetchResponseAbortedTransaction(producer_id=3, first_offset=2),
                ),
            },
        ),
        (
            "FetchResponse_v5",
            (1, 0, 8, 7, 6, None, b"x"),
            {"last_stable_offset": 7, "log_start_offset": 6, "aborted_transactions": ()},
        ),
    ],
)
async def test_a_fetch_answer_of_theirs(kind: str, row: Any, told: dict[str, Any]) -> None:
    shim = fetch(None)
    answer = getattr(their_fetch, kind)()
    answer.topics = [("t", [row])]
    answer.throttle_time_ms = 0
    shim.returned = answer
    understood = shim.understood()
    assert understood.session_id == 77  # the session is not broken by who knows none
    (topic,) = understood.responses
    assert topic.topic_id == ID
    expected: dict[str, Any] = {"aborted_transactions": None, **told}
    assert topic.partitions == (
        FetchResponsePartitionData(
            partition_index=1, error_code=0, high_watermark=8, records=b"x", **expected
        ),
    )


def produce(answer: Any, acks: int = 1) -> Any:
    async def send() -> Any:
        return answer

    data = ProduceRequestPartitionProduceData(index=1, records=b"abc")
    topic = ProduceRequestTopicProduceData(name="t", topic_id=ID, partition_data=(data,))
    request = ProduceRequest(transactional_id=None, acks=acks, timeout_ms=9, topic_data=(topic,))
    return ProduceShim(request, send, translated)


def produced(**changed: Any) -> ProduceResponse:
    fields: dict[str, Any] = {
        "index": 1,
        "error_code": 0,
        "base_offset": 4,
        "log_append_time_ms": -1,
        "log_start_offset": -1,
        "record_errors": (),
        **changed,
    }
    told = ProduceResponsePartitionProduceResponse(**fields)
    topic = ProduceResponseTopicProduceResponse(name="t", topic_id=ID, partition_responses=(told,))
    return ProduceResponse(throttle_time_ms=0, responses=(topic,))


async def test_a_produce_request_can_be_read_and_built_as_theirs() -> None:
    shim = produce(None)
    assert their_produce.ProduceRequest in type(shim).__mro__
    assert shim.topics == [("t", [(1, b"abc")])]
    assert shim.build(their_produce.ProduceRequest_v3).topics == shim.topics
    assert shim.required_acks == 1
    assert shim.refused(6) == produced(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1)


async def test_a_produce_answer_is_ours_until_it_is_changed() -> None:
    answer = produced()
    shim = produce(answer)
    shown = shim.returned = await shim.send()
    assert shim.understood() is answer
    assert shown.topics == [("t", [(1, 0, 4, -1, -1, [], None)])]
    shown.topics[0][1][0] = (1, 0, 9, -1, -1, [], None)
    assert shim.understood() == produced(base_offset=9)


@pytest.mark.parametrize(
    ("kind", "row", "told"),
    [
        ("ProduceResponse_v0", (1, 7, 4), {"error_code": 7}),
        ("ProduceResponse_v2", (1, 0, 4, 99), {"log_append_time_ms": 99}),
        ("ProduceResponse_v5", (1, 0, 4, 99, 3), {"log_append_time_ms": 99, "log_start_offset": 3}),
        (
            "ProduceResponse_v8",
            (1, 87, 4, -1, -1, [], "why"),
            {"error_code": 87, "error_message": "why"},
        ),
    ],
)
async def test_a_produce_answer_of_theirs(kind: str, row: Any, told: dict[str, Any]) -> None:
    shim = produce(None)
    answer = getattr(their_produce, kind)()
    answer.topics = [("t", [row])]
    shim.returned = answer
    assert shim.understood() == produced(**told)


async def test_nothing_is_the_answer_where_none_is_asked_for() -> None:
    shim = produce(None, acks=0)
    shim.returned = await shim.send()
    assert shim.understood() is None
    replaced = produce(produced(), acks=0)
    replaced.returned = None
    assert replaced.understood() is None


async def test_a_topic_that_is_not_known_has_no_id() -> None:
    shim = fetch(None)
    answer = their_fetch.FetchResponse_v0([("other", [])])
    shim.returned = answer
    assert shim.understood().responses[0].topic_id == ZERO_TOPIC_ID


@pytest.mark.parametrize("returned", [None, 7, "x", object()])
async def test_what_is_no_answer(returned: Any) -> None:
    for shim in (fetch(None), produce(None)):
        shim.returned = returned
        with pytest.raises(RemoteProtocolError, match="not a valid response"):
            shim.understood()


async def test_nothing_was_sent() -> None:
    with pytest.raises(RemoteProtocolError, match="returned nothing"):
        fetch(None).understood()


async def test_other_requests() -> None:
    answer = ConsumerGroupHeartbeatResponse(
        throttle_time_ms=0, error_code=0, member_epoch=1, heartbeat_interval_ms=5
    )

    async def send() -> Any:
        return answer

    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    shim = RequestShim(request, send, translated)
    assert shim.API_KEY == 68
    shim.returned = await shim.send()
    assert shim.understood() is answer

    class Refusal:
        error_code = 16

    shim.returned = Refusal()
    with pytest.raises(BrokerError, match="NOT_COORDINATOR"):
        shim.understood()


async def test_our_errors_are_theirs_on_the_way() -> None:
    lost = RequestTimedOut("late")

    async def send() -> Any:
        raise lost

    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
    shim = RequestShim(request, send, translated)
    with pytest.raises(Exception, match="late") as caught:
        await shim.send()
    assert type(caught.value).__module__.startswith("aiokafka")
    assert caught.value.__cause__ is lost
    assert shim.failures == [lost]
