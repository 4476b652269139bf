"""The records of ``__transaction_state`` as bytes: read again, and equal to Kafka's definitions."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups.record_format import RecordFormatError
from mock_coordinator.core.profiles import PROFILES, profile_named
from mock_coordinator.core.transaction_coordinator.record_format import (
    decode_transaction,
    encode_transaction,
)
from mock_coordinator.core.transaction_coordinator.records import (
    ClientVersion,
    TransactionLog,
    TransactionMetadata,
    TransactionState,
)
from tests.support.examples import examples
from tests.support.jar_codec import JarCodec
from tests.support.kafka_jars import kafka_jar
from tests.support.pytest_kafka import skip_without_kafka

EVERY_PROFILE = pytest.mark.parametrize("profile", tuple(PROFILES))

ids = st.integers(-1, 2**63 - 1)
epochs = st.integers(-1, 2**15 - 1)
places = st.lists(st.tuples(st.text(max_size=9), st.integers(0, 2**31 - 1)), unique=True)


@st.composite
def any_transaction(draw: st.DrawFn) -> TransactionLog:
    name = draw(st.text(max_size=20))
    if draw(st.integers(0, 9)) == 0:
        return TransactionLog(name, None)
    state = draw(st.sampled_from(TransactionState))
    value = TransactionMetadata(
        producer_id=draw(ids),
        previous_producer_id=draw(ids),
        next_producer_id=draw(ids),
        producer_epoch=draw(epochs),
        timeout_ms=draw(st.integers(0, 2**31 - 1)),
        state=state,
        partitions=() if state is TransactionState.EMPTY else tuple(draw(places)),
        last_update_ms=draw(st.integers(0, 2**62)),
        start_ms=draw(st.integers(-1, 2**62)),
        client_version=draw(st.sampled_from(ClientVersion)),
    )
    return TransactionLog(name, value)


@EVERY_PROFILE
@settings(max_examples=examples(100))
@given(record=any_transaction())
def test_what_is_written_is_read_again(profile: str, record: TransactionLog) -> None:
    kafka = profile_named(profile)
    read = decode_transaction(*encode_transaction(kafka, record))
    assert read is not None
    assert read.transactional_id == record.transactional_id
    assert (read.value is None) == (record.value is None)
    if record.value is None or read.value is None:
        return
    assert sorted(read.value.partitions) == sorted(record.value.partitions)
    knows_neighbours = profile in ("4.3", "4.4")
    known = (record.value.previous_producer_id, record.value.next_producer_id)
    assert (read.value.previous_producer_id, read.value.next_producer_id) == (
        known if knows_neighbours else (-1, -1)
    )
    forgets = profile == "4.0" and record.value.state is TransactionState.EMPTY
    assert read.value.start_ms == (-1 if forgets else record.value.start_ms)
    assert (
        encode_transaction(kafka, read) == encode_transaction(kafka, record)
        or len(record.value.partitions) > 1
    ), "only partitions whose hashes collide may change places"


@functools.cache
def codec_of(release: str) -> JarCodec:
    with skip_without_kafka():
        return JarCodec(kafka_jar(release, "kafka-transaction-coordinator"))


@pytest.mark.real_kafka
@EVERY_PROFILE
@settings(max_examples=examples(60), database=None)
@given(record=any_transaction())
def test_records_equal_the_definitions(profile: str, record: TransactionLog) -> None:
    kafka = profile_named(profile)
    codec = codec_of(kafka.release)
    key, value = encode_transaction(kafka, record)
    read_key = codec.decode("TransactionLogKey", 0, key[2:])
    assert key[:2] == b"\0\0"
    assert read_key == {"TransactionalId": record.transactional_id}
    assert codec.encode("TransactionLogKey", 0, read_key) == key[2:]
    assert (value is None) == (record.value is None)
    if value is None or record.value is None:
        return
    assert value[:2] == b"\0\1"
    fields = codec.decode("TransactionLogValue", 1, value[2:])
    assert codec.encode("TransactionLogValue", 1, fields) == value[2:]
    assert fields["ProducerId"] == record.value.producer_id
    assert fields["ClientTransactionVersion"] == record.value.client_version
    empty = record.value.state is TransactionState.EMPTY
    assert (fields["TransactionPartitions"] is None) == empty


# Written by brokers of 4.4.0 and 4.0.2.
OF_4_4 = (
    "0000000179",
    (
        "0001000000000000000200000000ea6003050c67616d6d612d746f7069630c00000011000000100000000200"
        "0000210000000100000020000000000000001f0000002700000026000000030006616c706861020000000100"
        "135f5f636f6e73756d65725f6f666673657473020000000000056265746103000000020000000000000001a1"
        "fd8c081a000001a1fd8c080e0100080000000000000002"
    ),
)
OF_4_0 = (
    "0000000178",
    "0001000000000000000100010000ea600401000001a1fd8c1ea9000001a1fd8c1e890102020002",
)


# Fifteen partitions again, as 4.0.2 and 4.1.2 order them.
MANY_OF_4_0 = (
    "0000000179",
    (
        "0001000000000000000200000000ea60030506616c7068610200000001000c67616d6d612d746f7069630c00"
        "0000000000000100000002000000270000000300000026000000210000002000000011000000100000001f00"
        "135f5f636f6e73756d65725f6f666673657473020000000000056265746103000000000000000200000001a1"
        "fd8c1ed0000001a1fd8c1ec600"
    ),
)
MANY_OF_4_1 = (
    "0000000179",
    (
        "0001000000000000000200000000ea60030506616c7068610200000001000c67616d6d612d746f7069630c00"
        "0000000000001000000020000000010000001100000021000000020000000300000026000000270000001f00"
        "135f5f636f6e73756d65725f6f666673657473020000000000056265746103000000000000000200000001a1"
        "fd8d315d000001a1fd8d315100"
    ),
)
FEW_OF_4_0 = (
    "0000000178",
    (
        "0001000000000000000100000000ea600102056265746104000000020000000100000000000000"
        "01a1fd8c1e9a000001a1fd8c1e890102020002"
    ),
)


@pytest.mark.parametrize(
    ("profile", "stored"),
    [
        ("4.4", OF_4_4),
        ("4.0", OF_4_0),
        ("4.0", MANY_OF_4_0),
        ("4.0", FEW_OF_4_0),
        ("4.1", MANY_OF_4_1),
        ("4.2", MANY_OF_4_1),
    ],
)
def test_what_a_broker_has_written_is_what_we_write(profile: str, stored: tuple[str, str]) -> None:
    key, value = (bytes.fromhex(each) for each in stored)
    record = decode_transaction(key, value)
    assert record is not None
    assert record.value is not None
    assert encode_transaction(profile_named(profile), record) == (key, value)
    sorted_ = replace(record.value, partitions=tuple(sorted(record.value.partitions)))
    again = TransactionLog(record.transactional_id, sorted_)
    if profile != "4.4":  # Java's order depends on what came first where hashes collide
        assert encode_transaction(profile_named(profile), again) == (key, value)


def test_a_record_of_4_4_says_what_it_should() -> None:
    record = decode_transaction(*(bytes.fromhex(each) for each in OF_4_4))
    assert record is not None
    assert record.transactional_id == "y"
    assert record.value is not None
    assert record.value.state is TransactionState.PREPARE_ABORT
    assert record.value.previous_producer_id == record.value.producer_id == 2
    assert record.value.partitions[-2:] == (("beta", 2), ("beta", 0))
    assert len(record.value.partitions) == 15


def test_a_key_type_of_the_future_is_skipped() -> None:
    assert decode_transaction(b"\0\x07whatever", b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", b""),
        (b"\0\0\0", b""),
        (b"\0\0\0\x01x", b"\0"),
        (b"\0\0\0\x01x", b"\0\x09"),
        (b"\0\0\0\x01x", bytes.fromhex(OF_4_0[1])[:-1]),
        (b"\0\0\0\x01x", bytes.fromhex(OF_4_0[1]).replace(b"\xea\x60\x04", b"\xea\x60\x63")),
        (b"\0\0\0\x01x", bytes.fromhex(OF_4_0[1])[:-5] + b"\x01\x03\x02\0\x01"),
    ],
)
def test_what_cannot_be_read_is_an_error(key: bytes, value: bytes) -> None:
    with pytest.raises(RecordFormatError):
        decode_transaction(key, value)


def test_an_id_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(RecordFormatError, match="cannot write"):
        encode_transaction(profile_named("4.4"), TransactionLog("x" * 40_000, None))
