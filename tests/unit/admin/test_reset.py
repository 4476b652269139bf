"""What a reset of offsets computes, and the texts that say where to."""

from __future__ import annotations

import pytest

from kip848_client import ConfigError, TopicPartition
from kip848_client.admin import (
    ByDuration,
    OffsetReset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    parse_datetime_ms,
    parse_plan,
    written_plan,
)
from kip848_client.admin.core._reset import KnownOffsets, new_offsets, time_wanted_ms
from kip848_client.core.visible import visible

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
KNOWN = KnownOffsets(
    committed={A: 15},
    begin={A: 10, B: 0},
    end={A: 20, B: 7},
    by_time={A: 12, B: -1},
)


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        (ToEarliest(), {A: 10, B: 0}),
        (ToLatest(), {A: 20, B: 7}),
        (ToCurrent(), {A: 15, B: 7}),
        (ToOffset(5), {A: 10, B: 5}),
        (ToOffset(99), {A: 20, B: 7}),
        (ToTime(1), {A: 12, B: 7}),
        (ByDuration(1), {A: 12, B: 7}),
        (ToPlan({A: 11, B: 99}), {A: 11, B: 7}),
    ],
)
def test_new_offsets(reset: OffsetReset, expected: dict[TopicPartition, int]) -> None:
    assert new_offsets(reset, [B, A, B], KNOWN) == expected
    assert list(new_offsets(reset, [B, A], KNOWN)) == [A, B]


@pytest.mark.parametrize(("records", "expected"), [(-3, 12), (-99, 10), (3, 18), (99, 20)])
def test_a_shift_stays_in_the_log(records: int, expected: int) -> None:
    assert new_offsets(ShiftBy(records), [A], KNOWN) == {A: expected}


def test_a_shift_needs_a_committed_offset() -> None:
    with pytest.raises(ConfigError, match="t-1 since there is no current committed offset"):
        new_offsets(ShiftBy(1), [A, B], KNOWN)


def test_times_are_asked_for_where_they_matter() -> None:
    assert time_wanted_ms(ToTime(5), 100) == 5
    assert time_wanted_ms(ByDuration(30), 100) == 70
    assert time_wanted_ms(ByDuration(300), 100) == 0
    assert time_wanted_ms(ToEarliest(), 100) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1_500),
        ("1970-01-01T01:00:01.500+01:00", 1_500),
        ("1970-01-01T00:00:00Z", 0),
    ],
)
def test_dates(text: str, expected: int) -> None:
    assert parse_datetime_ms(text) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01", "2026-13-01T00:00:00"])
def test_what_is_no_date_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a date and time"):
        parse_datetime_ms(text)


def test_a_plan_is_read_as_it_was_written() -> None:
    one = {"g": {A: 5, B: 6}}
    assert written_plan(one) == "t,0,5\nt,1,6\n"
    assert parse_plan(written_plan(one) + "\n", ["g"]) == one
    two = {"g": {A: 5}, "h,i": {B: 6}}
    assert parse_plan(written_plan(two), ["g", "h,i"]) == two


@pytest.mark.parametrize(
    ("topic", "written"),
    [
        ("a" * 24, "a" * 24),
        ("a" * 25, '"' + "a" * 25 + '"'),
        ("a.b-c_D:9", "a.b-c_D:9"),
        ("a b", '"a b"'),
        ("a+b", '"a+b"'),
        ("a\\b", '"a\\b"'),
        ('say "a"', '"say ""a"""'),
    ],
)
def test_a_name_is_in_quotes_where_kafkas_tool_has_them(topic: str, written: str) -> None:
    plan = {"g": {TopicPartition(topic, 0): 5}}
    assert written_plan(plan) == f"{written},0,5\n"
    assert parse_plan(written_plan(plan), ["g"]) == plan


@pytest.mark.parametrize("text", ["t,0", "t,x,5", "t,0,-5", ",0,5", "g,t,0,5,6", "t,0,٣"])
def test_a_line_that_is_no_plan_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        parse_plan(f"t,0,5\n{text}\n", ["g"])


def test_a_plan_for_others_is_refused() -> None:
    with pytest.raises(ConfigError, match="'h', which is not asked for"):
        parse_plan("h,t,0,5\n", ["g"])


def test_a_group_is_found_by_its_own_name_before_that_which_is_shown_of_another() -> None:
    """One is shown as the other is called."""
    odd = "a\x1bb"
    plain = visible(odd)
    assert parse_plan(f"{plain},t,0,5\n", (plain, odd)) == {plain: {A: 5}}
    assert parse_plan(f"{plain},t,0,5\n", (odd, "c")) == {odd: {A: 5}}


def test_to_current_takes_what_is_committed_wherever_the_log_is() -> None:
    known = KnownOffsets(
        committed={A: 5, B: 50}, begin={A: 10, B: 0}, end={A: 20, B: 7}, by_time={}
    )
    assert new_offsets(ToCurrent(), [A, B], known) == {A: 5, B: 50}
