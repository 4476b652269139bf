"""Orders against values taken from Java 17 and from Kafka's TimelineHashMap."""

from __future__ import annotations

import struct

import pytest

from kip848_client.core.assignors._java_order import (
    DEFAULT_CAPACITY,
    TimelineOrder,
    capacity_with,
    grown,
    map_copy_capacity,
    member_order,
    partition_bucket_order,
    partition_order,
    partitions_capacity,
    set_copy_capacity,
    settled_capacity,
    string_hash,
    string_set_order,
    string_spread,
    table_order,
    table_size_for,
    topic_hash,
    topic_spread,
    utf16_key,
)
from kip848_client.core.types import MemberId, format_topic_id, parse_topic_id

TOPIC_IDS = [
    parse_topic_id(text)
    for text in (
        "T-9dYQTxJe70QOX56WHbRw",
        "8h78bVmlFHUEltdpiEsDnQ",
        "MVKwKCHwGV978nr5lTBwSA",
        "6vk_PxMHSOqE1zt1ZCW9TA",
    )
]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("A", 65),
        ("g", 103),
        ("foo", 101574),
        ("my-group", -1906497762),
        ("topic-0", -1139260654),
        ("topic-12", -957341825),
        ("ä", 228),
        ("\U0001f600", 1772899),
        ("\U0001d538b", 54946079),
        ("orders", -1008770331),
    ],
)
def test_string_hash(text: str, code: int) -> None:
    assert string_hash(text) == code


def test_a_lone_surrogate_has_a_hash() -> None:
    assert string_hash("\ud800") == 0xD800


def test_topic_hash() -> None:
    signed = [struct.unpack(">i", topic_hash(id_).to_bytes(4, "big"))[0] for id_ in TOPIC_IDS]
    assert signed == [1446987313, 661011692, -27221050, 420278764]


def test_table_size_for() -> None:
    assert [table_size_for(n) for n in (0, 1, 2, 3, 4, 5, 16, 17)] == [1, 1, 2, 4, 4, 8, 16, 32]


def test_copy_capacities() -> None:
    assert [set_copy_capacity(n) for n in (0, 11, 12, 23, 24, 100)] == [16, 16, 32, 32, 64, 256]
    assert [map_copy_capacity(n) for n in (0, 1, 2, 3, 12, 13)] == [16, 2, 4, 8, 32, 32]


def test_growth() -> None:
    assert [grown(16, n) for n in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]
    assert [grown(1, n) for n in (0, 1, 2, 3, 4, 6, 7)] == [1, 2, 4, 4, 8, 8, 16]


def test_a_ninth_entry_in_a_bucket_doubles_a_short_table() -> None:
    colliding = [16 * n for n in range(8)]
    assert settled_capacity(colliding, 16) == 16
    assert settled_capacity([*colliding, 128], 16) == 32
    assert settled_capacity([*colliding, 129], 16) == 16
    assert settled_capacity([64 * n for n in range(10)], 16) == 64
    assert settled_capacity([64 * n for n in range(12)], 16) == 64  # a tree from here on
    assert capacity_with(colliding, 128, 16) == 32
    assert capacity_with(colliding, 128, 64) == 64
    assert capacity_with(range(12), 12, 16) == 32


@pytest.mark.parametrize(
    ("inserted", "iterated"),
    [
        ([], []),
        ([7], [7]),
        (range(10, 20), [16, 17, 18, 19, 10, 11, 12, 13, 14, 15]),
        ([33, 17, 1, 16, 0, 49], [16, 0, 33, 17, 1, 49]),
        (
            [5, 160, 1, 16, 32, 48, 64, 80, 96, 112, 128, 144, 17],
            [160, 32, 64, 96, 128, 1, 5, 16, 48, 80, 112, 144, 17],
        ),
        (
            [160, 144, 128, 112, 96, 80, 64, 48, 32, 16, 0, 3],
            [160, 128, 96, 64, 32, 0, 3, 144, 112, 80, 48, 16],
        ),
    ],
)
def test_partition_order(inserted: list[int], iterated: list[int]) -> None:
    assert partition_order(tuple(inserted)) == iterated
    if inserted:
        capacity = partitions_capacity(tuple(inserted))
        assert partition_bucket_order(inserted, capacity) == iterated


def test_string_set_order() -> None:
    assert string_set_order(["foo", "bar", "baz"]) == ["bar", "foo", "baz"]
    topics = [f"topic-{number}" for number in range(13)]
    expected = [6, 7, 8, 9, 0, 1, 2, 3, 10, 4, 11, 5, 12]
    assert string_set_order(topics) == [f"topic-{number}" for number in expected]


def test_repeated_names_count_for_the_size_only() -> None:
    members = [f"member-{number}" for number in range(11)]
    assert sorted(string_set_order(members * 2)) == sorted(members)
    assert string_set_order(members * 2) == table_order(members, string_spread, 32)


def test_map_order_depends_on_the_constructor() -> None:
    members = [f"member-{number}" for number in range(12)]

    def named(*numbers: int) -> list[str]:
        return [f"member-{number}" for number in numbers]

    plain = table_order(members, string_spread, DEFAULT_CAPACITY)
    assert plain == named(1, 2, 0, 5, 6, 3, 4, 9, 11, 10, 7, 8)
    copy = table_order(plain, string_spread, map_copy_capacity(12))
    assert copy == named(5, 6, 3, 4, 9, 11, 10, 7, 8, 1, 2, 0)
    assert table_order(["foo", "bar", "baz"], string_spread, 4) == ["bar", "baz", "foo"]


def test_topic_id_order() -> None:
    order = table_order(TOPIC_IDS, topic_spread, DEFAULT_CAPACITY)
    assert [format_topic_id(id_)[:3] for id_ in order] == ["6vk", "MVK", "8h7", "T-9"]


def test_utf16_key_compares_code_units() -> None:
    # U+1D538 is a surrogate pair (D835 DD38): less than U+FF5A in UTF-16, greater as code points
    assert utf16_key("\U0001d538") < utf16_key("\uff5a")
    assert utf16_key("a") < utf16_key("aa") < utf16_key("b")


# --- Members --------------------------------------------------------------------------------------


def _numbers(text: str) -> list[MemberId]:
    return [MemberId(f"m{number}") for number in text.split()]


def test_timeline_order_and_member_order_of_twenty() -> None:
    timeline = TimelineOrder()
    for number in range(1, 21):
        timeline.put(f"m{number}")
        timeline.put(f"m{number}")
    kafkas = _numbers("20 5 12 17 2 14 7 19 4 11 16 9 1 6 13 18 3 10 15 8")
    assert list(timeline) == kafkas
    order = _numbers("1 2 3 4 5 6 20 7 8 11 9 10 13 12 15 14 17 16 19 18")
    assert member_order(map(MemberId, timeline)) == order
    assert member_order(map(MemberId, timeline), joining=MemberId("m5")) == order


def test_timeline_removes_and_knows_what_it_holds() -> None:
    timeline = TimelineOrder()
    for step in ["a", "b", "c", "d", "-b", "e", "f", "b", "g", "h", "-a", "i", "-nobody"]:
        if step.startswith("-"):
            timeline.remove(step[1:])
        else:
            timeline.put(step)
    assert list(timeline) == ["f", "c", "h", "e", "b", "g", "d", "i"]
    assert len(timeline) == 8
    assert "b" in timeline
    assert "a" not in timeline
    assert 7 not in timeline
    assert repr(timeline).startswith("TimelineOrder(['f'")


def test_a_joining_member_comes_last_in_its_bucket() -> None:
    assert string_spread("a") & 15 == string_spread("q") & 15
    assert member_order([MemberId("a")], joining=MemberId("q")) == ["a", "q"]
    assert member_order([MemberId("q")], joining=MemberId("a")) == ["q", "a"]


def test_a_replaced_static_member_leaves_the_order() -> None:
    timeline = [MemberId("a"), MemberId("b"), MemberId("c")]
    order = member_order(timeline, joining=MemberId("z"), replaced=MemberId("b"))
    assert sorted(order) == ["a", "c", "z"]
    assert member_order(timeline, replaced=MemberId("nobody")) == timeline


def test_a_replacement_can_leave_a_larger_table_up_to_43() -> None:
    members = [MemberId(f"member-{number}") for number in range(12)]
    left = {
        joining: member_order(members, joining=MemberId(joining), replaced=members[0])
        == member_order(members, joining=MemberId(joining), replaced=members[0], overlay=True)
        for joining in ("x", "y", "z", "p")
    }
    # the new member is inserted before the old one is removed only if its bucket comes first
    first = {
        joining: (string_spread(joining) & 15) <= (string_spread(members[0]) & 15)
        for joining in left
    }
    assert left == {joining: not before for joining, before in first.items()}
