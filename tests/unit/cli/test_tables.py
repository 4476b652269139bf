"""Tables that are made to fit a terminal: whatever is in them, no line is wider, and no number is
cut."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.cli.core._cells import cropped, folded, shortened, told_apart, width_of
from kip848_client.cli.core._tables import Column, Fit, Form, Table
from tests.support.examples import examples
from tests.unit.test_visible import ANYTHING

COLUMNS: Final = (
    Column("GROUP", fit=Fit.FOLDED, is_title=True),
    Column("ID", fit=Fit.SHORTENED),
    Column("OFFSET", short="AT"),
    Column("OTHER", form=Form.PLAIN),
    Column("HOST", fit=Fit.SHORTENED, may_go=True),
    Column("PARTITIONS", fit=Fit.FOLDED),
    Column("STATE", form=Form.FITTED, calm=12),
)
CELLS: Final = st.tuples(
    st.sampled_from(["g", "group"]),
    ANYTHING,
    st.one_of(st.none(), st.integers(0, 2**63)),
    st.integers(),
    ANYTHING,
    st.lists(st.integers(0, 10**9), max_size=30).map(lambda numbers: ",".join(map(str, numbers))),
    st.sampled_from(["Stable", "CompletingRebalance"]),
)


@settings(max_examples=examples(200))
@given(st.lists(CELLS, max_size=5), st.integers(10, 200))
def test_every_line_fits(rows: list[tuple[Any, ...]], width: int) -> None:
    lines = Table(COLUMNS, rows).fitted(width)
    assert [line for line in lines if width_of(line) > width] == []
    assert all(line.isprintable() for line in lines)
    if width >= 80:
        shown = [word for line in lines for word in line.split()]
        assert all(str(row[2]) in shown for row in rows if row[2] is not None)


@settings(max_examples=examples(200))
@given(ANYTHING, st.integers(2, 30))
def test_pieces_fit_and_are_the_whole(text: str, width: int) -> None:
    assert width_of(cropped(text, width)) <= width
    assert width_of(shortened(text, width)) <= width
    pieces = folded(text, width)
    assert all(width_of(piece) <= width for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


def test_ids_lose_their_middle_and_lists_go_on_in_their_column() -> None:
    row = ("g", "aiokafka-0.14.0-01379b41-5e62", 17, 0, "/127.0.0.1", "orders:0,1,2;paid:3,4", "ok")
    table = Table(COLUMNS, [row, row])
    assert table.fitted(100)[:2] == [
        "GROUP g",
        "ID                             OFFSET  HOST        PARTITIONS             STATE",
    ]
    assert table.fitted(59)[:4] == [
        "GROUP g",
        "ID           AT  HOST        PARTITIONS        STATE",
        "aioka…-5e62  17  /127.0.0.1  orders:0,1,2;     ok",
        "                             paid:3,4",
    ]
    assert table.fitted(50)[1:3] == [
        "ID           AT  PARTITIONS           STATE",
        "aioka…-5e62  17  orders:0,1,2;        ok",
    ]
    assert table.fitted(30)[1:8] == [
        "ID          aiokafka-0.14.0-",
        "            01379b41-5e62",
        "AT          17",
        "HOST        /127.0.0.1",
        "PARTITIONS  orders:0,1,2;",
        "            paid:3,4",
        "STATE       ok",
    ]
    assert "GROUP" not in table.fitted(100, is_titled=False)[0]


def test_groups_that_differ_stay_a_column() -> None:
    rows = [(name, "id", 1, 2, "h", "p", "s") for name in ("a", "b")]
    head, *_ = Table(COLUMNS, rows).fitted(100)
    assert head.split()[:2] == ["GROUP", "ID"]
    assert Table(COLUMNS, []).fitted(100) == ["ID  OFFSET  HOST  PARTITIONS  STATE"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", [""]),
        ("a b", ["a b"]),
        ("ab cd", ["ab", "cd"]),
        ("a.bcd", ["a.", "bcd"]),
        ("a.bc,d", ["a.", "bc,", "d"]),
        ("abcdefg", ["abc", "def", "g"]),
    ],
)
def test_what_is_folded(text: str, pieces: list[str]) -> None:
    assert folded(text, 3) == pieces


URLS = [f"http://worker-{n}.prod.internal.example.com:8083/" for n in range(12)]


@pytest.mark.parametrize("width", [11, 14, 19, 30])
def test_what_is_shortened_still_tells_values_apart(width: int) -> None:
    ids = ["abcdefghijklmnopqrstuv", "abcdefghijklmnopqrstuw"]
    for values in (URLS, ids, [*URLS, "-"], ["x" * 40 + "1" + "y" * 40, "x" * 40 + "2" + "y" * 40]):
        shown = told_apart(values, width)
        assert len(set(shown.values())) == len(values), shown
        assert all(width_of(each) <= width for each in shown.values())


def test_an_address_is_shown_by_its_host_where_that_is_what_differs() -> None:
    dots = "\N{HORIZONTAL ELLIPSIS}"
    assert told_apart(URLS[:2], 11)[URLS[1]] == f"{dots}worker-1.{dots}"


def test_what_cannot_be_told_apart_is_shortened() -> None:
    assert set(told_apart(["a" * 30, "a" * 31], 1).values()) == {shortened("a" * 30, 1)}


def test_a_narrow_table_tells_workers_apart() -> None:
    columns = [Column("URL", grows=True, fit=Fit.SHORTENED), Column("N", width=1)]
    lines = Table(columns, [(url, 1) for url in URLS]).fitted(14)
    assert len(set(lines)) == len(URLS) + 1
    assert all(width_of(each) <= 14 for each in lines)
