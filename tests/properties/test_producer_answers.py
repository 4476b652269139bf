"""Whatever a broker answers: the translation of an answer never raises, and no record is lost from
sight."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.produce import (
    NO_PRODUCER,
    AddOffsets,
    AddPartitions,
    BatchDone,
    BatchFailed,
    BatchSplit,
    CommitOffsets,
    CoordinatorKind,
    DescribeTransaction,
    EndTransaction,
    FindCoordinator,
    Group,
    InitProducerId,
    OffsetToCommit,
    ProducerId,
    SealedBatch,
    SendProduce,
    TransactionVersion,
)
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce import _wire as wire
from kip848_client.core.produce._model import Produced, ProduceSettings
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.api_versions import ApiVersionsResponse
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorResponse
from kip848_client.core.wire.messages.produce import ProduceResponse
from kip848_client.core.wire.messages.transaction_admin import DescribeTransactionsResponse
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from tests.contract.message_strategies import fitted, messages
from tests.support.examples import examples
from tests.unit.core.produce._harness import RECORD_BYTES, Harness, tp

T = TopicId(b"t" * 16)
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
ME = ProducerId(7, 3)
V2 = TransactionVersion.V2
OFFSETS = {T0: OffsetToCommit(1, -1, "", T), T1: OffsetToCommit(2, -1, "", T)}

PRODUCE = SendProduce(
    1, 2, -1, "x", V2, (SealedBatch(T0, T, b"0"), SealedBatch(T1, None, b"1")), 500
)
FIND = FindCoordinator(1, CoordinatorKind.GROUP, "t")
INIT = InitProducerId(1, 2, "x", 60_000, NO_PRODUCER)
ADD = AddPartitions(1, 2, "x", ME, (T0, T1))
ADD_OFFSETS = AddOffsets(1, 2, "x", ME, "g")
COMMIT = CommitOffsets(1, 2, "x", ME, V2, Group("g", 5, "m", None), OFFSETS)
END = EndTransaction(1, 2, "x", ME, V2, commit=True)
DESCRIBE = DescribeTransaction(1, 2, "x")

READERS: dict[str, tuple[type[Any], tuple[int, int], Callable[[Any], Any]]] = {
    "Produce": (ProduceResponse, (3, 13), lambda told: wire.produce_answer(PRODUCE, told)),
    "endpoints": (ProduceResponse, (3, 13), wire.node_endpoints),
    "FindCoordinator": (
        FindCoordinatorResponse,
        wire.FIND_COORDINATOR_VERSIONS,
        lambda told: wire.coordinator_answer(FIND, told),
    ),
    "InitProducerId": (
        InitProducerIdResponse,
        wire.init_producer_id_versions(INIT),
        lambda told: wire.producer_id_answer(INIT, told),
    ),
    "AddPartitions": (
        AddPartitionsToTxnResponse,
        wire.ADD_PARTITIONS_VERSIONS,
        lambda told: wire.partitions_added_answer(ADD, told),
    ),
    "AddOffsets": (
        AddOffsetsToTxnResponse,
        wire.ADD_OFFSETS_VERSIONS,
        lambda told: wire.offsets_added_answer(ADD_OFFSETS, told),
    ),
    "CommitOffsets": (
        TxnOffsetCommitResponse,
        (3, 6),
        lambda told: wire.offsets_answer(COMMIT, told),
    ),
    "EndTxn": (EndTxnResponse, (0, 5), lambda told: wire.end_transaction_answer(END, told)),
    "DescribeTransactions": (
        DescribeTransactionsResponse,
        wire.DESCRIBE_VERSIONS,
        lambda told: wire.transaction_described_answer(DESCRIBE, told),
    ),
    "ApiVersions": (ApiVersionsResponse, wire.FEATURES_VERSIONS, wire.transaction_level),
}


def aimed(value: Any, rng: Random) -> Any:
    """The same message, often about what was asked for."""
    if isinstance(value, tuple):
        return tuple(aimed(each, rng) for each in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    hits = {
        "name": "t",
        "key": "t",
        "topic_id": T,
        "index": 0,
        "partition_index": 1,
        "transactional_id": "x",
    }
    fields = {
        each.name: aimed(getattr(value, each.name), rng) for each in dataclasses.fields(value)
    }
    for name in fields.keys() & hits.keys():
        if rng.random() < 0.5:
            fields[name] = hits[name]
    return dataclasses.replace(value, **fields)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_the_translation_takes_any_answer(name: str, data: st.DataObject) -> None:
    cls, (low, high), read = READERS[name]
    rng = data.draw(st.randoms(use_true_random=False))
    version = data.draw(st.integers(low, high))
    told = fitted(aimed(data.draw(messages(cls)), rng), version)
    answer = read(decode(cls, version, encode(told, version)))
    asked = {T0, T1}
    if name == "Produce":
        assert answer.partitions.keys() <= asked
        assert all(type(each) is TopicPartition for each in answer.partitions)
    elif name in ("AddPartitions", "CommitOffsets"):
        assert answer.partitions.keys() <= asked


# -- records -------------------------------------------------------------------------------------

INT16 = st.integers(-(2**15), 2**15 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
KNOWN = st.sampled_from(range(-1, 134))
PRODUCED = st.builds(
    Produced,
    error_code=st.just(0) | KNOWN | INT16,
    base_offset=INT64,
    log_append_time_ms=INT64,
    log_start_offset=INT64,
    error_message=st.none() | st.text(max_size=3),
    record_errors=st.dictionaries(
        st.integers(-(2**31), 2**31 - 1) | st.integers(0, 5),
        st.none() | st.text(max_size=3),
        max_size=3,
    ),
    leader=st.none() | st.tuples(st.integers(-2, 4), st.integers(-1, 9)),
)
KINDS = {
    "idempotent": ProduceSettings(batch_bytes=61 + 4 * RECORD_BYTES, delivery_timeout_ms=3_000),
    "plain": ProduceSettings(
        batch_bytes=61 + 4 * RECORD_BYTES, delivery_timeout_ms=3_000, idempotent=False, acks=1
    ),
    "nobody answers": ProduceSettings(
        batch_bytes=61 + 4 * RECORD_BYTES, delivery_timeout_ms=3_000, idempotent=False, acks=0
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_each_record_is_told_of_once_whatever_is_answered(kind: str, data: st.DataObject) -> None:
    h = Harness(KINDS[kind], partitions=3, leader=lambda number: 1 + number % 2)
    sizes: dict[int, int] = {}
    for _ in range(data.draw(st.integers(1, 25))):
        match data.draw(st.sampled_from(["append", "append", "answer", "answer", "lose", "wait"])):
            case "append":
                to = tp(data.draw(st.integers(0, 2)))
                count = data.draw(st.integers(1, 6))
                for placed in h.append(*["abc"] * count, to=to):
                    sizes[placed.batch] = placed.row + 1
            case "answer" if h.open:
                request = data.draw(st.sampled_from(h.open))
                h.open.remove(request)
                asked = [each.tp for each in request.batches]
                keys = st.sampled_from([*asked, tp(2), tp(7), tp(0, "other")])
                told = data.draw(st.dictionaries(keys, PRODUCED, max_size=4))
                h.post(ev.ProduceAnswered(request.produce, told))
                if data.draw(st.booleans()):
                    h.post(ev.ProduceAnswered(request.produce, told))  # which is late
            case "lose" if h.open:
                request = data.draw(st.sampled_from(h.open))
                h.lose(request=request, maybe_sent=data.draw(st.booleans()))
            case _:
                h.advance(data.draw(st.sampled_from([1, 5, 100, 1_000])))
    for _ in range(100):  # from now on brokers take everything
        while h.open:
            h.answer()
        if not h.core.snapshot().unreported:
            break
        h.advance(1_000)
    check_told_once(h, sizes)
    snapshot = h.core.snapshot()
    assert (snapshot.held_bytes, snapshot.unreported, snapshot.on_the_wire) == (0, 0, 0)
    (placed,) = h.append("abc")
    h.advance(1_500)
    while h.open:
        h.answer()
    assert placed.batch in h.done, "it does not get over what it was told"


def check_told_once(h: Harness, sizes: dict[int, int]) -> None:
    """``sizes``: how many records were appended to a batch."""
    for split in h.all(BatchSplit):
        assert sum(records for _, records in split.parts) == sizes.pop(split.batch)
        sizes.update(split.parts)
    ended = [each.batch for each in h.commands if isinstance(each, BatchDone | BatchFailed)]
    assert sorted(ended) == sorted(sizes), "each batch has one end"
