"""Faults as JSON: what they become, and what is said about nonsense."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.offset_commit import OffsetCommitResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError
from mock_coordinator.core.faults import (
    Action,
    Answer,
    CorruptBatch,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Fault,
    Match,
    Moment,
    MoveCoordinator,
    Refuse,
    Throttle,
    fault_from_json,
    faults_from_json,
)


def test_a_whole_fault() -> None:
    (fault,) = faults_from_json(
        """[{"name": "late", "nth": 2, "times": null, "delay_ms": 5, "of": "request",
             "match": {"api": "Fetch", "version": [4, 11], "node": 1, "client": "c", "group": "g",
                       "member": "m", "topic": "t", "partition": 0}}]"""
    )
    match = Match(
        api="Fetch",
        versions=(4, 11),
        node_id=1,
        client_id="c",
        group_id="g",
        member_id="m",
        topic="t",
        partition=0,
    )
    assert fault == Fault(Delay(5, Moment.REQUEST), match, 2, None, "late")


@pytest.mark.parametrize(
    ("row", "action"),
    [
        ({"error": "NOT_COORDINATOR"}, Refuse(ErrorCode.NOT_COORDINATOR)),
        ({"error": 4242, "message": "no"}, Refuse(4242, "no")),
        ({"delay_ms": 7}, Delay(7, Moment.RESPONSE)),
        ({"drop": "request"}, Drop(Moment.REQUEST)),
        ({"disconnect": "response", "after_bytes": 3}, Disconnect(Moment.RESPONSE, 3)),
        ({"throttle_ms": 9}, Throttle(9)),
        ({"duplicate": True}, Duplicate()),
        ({"corrupt_batch": True}, CorruptBatch()),
        ({"move_coordinator": 2}, MoveCoordinator(2)),
        ({"move_coordinator": "next"}, MoveCoordinator()),
    ],
)
def test_actions(row: dict[str, object], action: Action) -> None:
    assert fault_from_json(row) == Fault(action)


def test_an_answer_is_written_field_by_field() -> None:
    fault = fault_from_json(
        {
            "match": {"api": "OffsetCommit", "version": 9},
            "answer": {
                "topics": [
                    {"name": "t", "partitions": [{"partition_index": 1, "error_code": 16}]},
                    {"topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"},
                ]
            },
        }
    )
    assert isinstance(fault.action, Answer)
    response = fault.action.response
    assert isinstance(response, OffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    assert response.topics[1].topic_id == bytes(15) + b"\x01"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[3]", "fault 1: a fault: expected an object"),
        ("[{}]", "expected one of error,"),
        ('[{"drop": "request", "duplicate": true}]', "expected one of"),
        ('[{"drop": "never"}]', "request or response"),
        ('[{"drop": "request", "colour": 3}]', "unknown fields: colour"),
        ('[{"match": {"ip": 3}, "drop": "request"}]', "match: unknown fields: ip (known: api"),
        ('[{"match": {"version": "x"}, "drop": "request"}]', "version = 'x'"),
        ('[{"match": {"api": "Nope"}, "drop": "request"}]', "unknown API 'Nope'"),
        ('[{"match": {"api": "Nope"}, "answer": {}}]', "unknown API 'Nope'"),
        ('[{"answer": {}}]', "answer needs match.api"),
        ('[{"match": {"api": "Fetch"}, "answer": {"x": 1}}]', "Fetch: unknown fields: x"),
        ('[{"error": "NOPE"}]', "error = 'NOPE'"),
        ('[{"delay_ms": -1}]', "negative"),
        ('[{"drop": "request", "nth": 0}]', "nth = 0"),
        ('[{"drop": "request", "times": 0}]', "times = 0"),
        ('[{"drop": "request", "times": "x"}]', "times = 'x'"),
    ],
)
def test_nonsense_is_named(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        faults_from_json(text)
    assert says in str(caught.value)
