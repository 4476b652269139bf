"""The bytes before a value, and values that do not fit their column."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry.serde import SchemaId
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.spark.pipeline.registry._fitting import Unfit, fitting
from kip848_client.spark.pipeline.registry.core._confluent_frame import (
    Unframed,
    message_index,
    schema_id,
)
from kip848_client.spark.pipeline.registry.core._kinds import (
    Decimals,
    Kind,
    List,
    Map,
    Struct,
    ddl_of,
)


@given(st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31), min_size=1, max_size=5))
def test_a_frame_of_confluents_client_is_read(number: int, index: list[int]) -> None:
    value = SchemaId("PROTOBUF", number, message_indexes=index).id_to_bytes() + b"rest"
    assert schema_id(value) == number
    found, start = message_index(value)
    assert (list(found), value[start:]) == (index, b"rest")


def test_a_single_zero_stands_for_the_first_message() -> None:
    assert message_index(b"\0\0\0\0\1\0rest") == ((0,), 6)


@pytest.mark.parametrize(
    "value", [b"\0\0\0\0\1", b"\0\0\0\0\1\4\2", b"\0\0\0\0\1\1", b"\0\0\0\0\1" + b"\xff" * 12]
)
def test_a_position_that_is_none_is_refused(value: bytes) -> None:
    with pytest.raises(Unframed):
        message_index(value)


@given(st.binary(max_size=20))
def test_any_bytes_are_a_frame_or_refused(value: bytes) -> None:
    try:
        assert schema_id(value) == int.from_bytes(value[1:5])
        message_index(value)
    except Unframed:
        pass


_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("int", 2**31 - 1, 2**31 - 1),
        ("int", 2**31, None),
        ("int", True, None),
        ("long", 3.0, 3),
        ("long", 3.5, None),
        ("long", -(2**63), -(2**63)),
        ("double", 3, 3.0),
        ("double", 10**400, None),
        ("double", "3", None),
        ("boolean", 1, None),
        ("string", b"a", None),
        ("string", "\ud800", None),
        ("binary", bytearray(b"a"), b"a"),
        ("date", 1, date(1970, 1, 2)),
        ("date", 10**9, None),
        ("date", _NOON, None),
        ("timestamp_ms", 1_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("timestamp_us", 2**62, None),
        ("timestamp_us", "x", None),
        ("local_timestamp_us", _NOON, _NOON.replace(tzinfo=None)),
        (Decimals(4, 2), Decimal("12.34"), Decimal("12.34")),
        (Decimals(4, 2), Decimal("123.4"), None),
        (Decimals(4, 2), Decimal("1.234"), None),
        (Decimals(4, 2), Decimal("NaN"), None),
        (List("int"), [1, None], [1, None]),
        (List("int"), "12", None),
        (Map("int"), {"a": 1}, [("a", 1)]),
        (Map("int"), {"a": "1"}, None),
        (Struct((("a", "int"),)), {"a": 1, "b": 2}, {"a": 1}),
        (Struct((("a", "int"),)), {}, {"a": None}),
        (Struct((("a", "int"),)), [1], None),
    ],
)
def test_a_value_fits_or_is_refused(kind: Kind, value: Any, wanted: Any) -> None:
    if wanted is None:
        with pytest.raises(Unfit):
            fitting(kind)(value)
    else:
        assert fitting(kind)(value) == wanted
    assert fitting(kind)(None) is None


def test_names_of_fields_are_quoted() -> None:
    kind = Struct((("a`b", Map(List("long"), "int")), ("c d", Decimals(9, 1))))
    assert ddl_of(kind) == "struct<`a``b`:map<int,array<bigint>>,`c d`:decimal(9,1)>"
