"""Connectors and tasks as resources, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.connect import (
    ITSELF,
    ItemsError,
    connector_of,
    item_name,
    parts_of,
    read_items,
    resource_of,
    taken_once,
    write_items,
)
from kip848_client.core.wire.messages.connect_group import ConnectGroupItems

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
GENERATIONS = st.integers(0, 2**31 - 1)


@given(
    st.dictionaries(
        st.tuples(NAMES, GENERATIONS | st.just(ITSELF)),
        st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4, unique=True),
        max_size=5,
    )
)
def test_what_is_written_is_read_again(held: dict[tuple[str, int], list[int]]) -> None:
    taken = set[tuple[str, int]]()
    resources = {}
    for (connector, generation), tasks in held.items():
        assert connector_of(resource_of(connector, generation)) == (connector, generation)
        parts = [ITSELF] if generation == ITSELF else sorted(tasks)
        free = [part for part in parts if (connector, part) not in taken]
        taken |= {(connector, part) for part in free}
        if free:
            resources[resource_of(connector, generation)] = tuple(free)
    rows = write_items(resources)
    assert read_items(rows) == resources
    assert parts_of(rows) == {(each, part) for each, parts in resources.items() for part in parts}
    assert len({(row.connector, row.generation) for row in rows}) == len(rows)


def test_a_connector_is_in_the_row_of_its_newest_tasks() -> None:
    held = {
        resource_of("b", ITSELF): (ITSELF,),
        resource_of("a", 2): (1, 0),
        resource_of("a", ITSELF): (ITSELF,),
        resource_of("a", 1): (3,),
        resource_of("c", 7): (),
    }
    assert write_items(held) == (
        ConnectGroupItems(connector="a", generation=1, tasks=(3,)),
        ConnectGroupItems(connector="a", generation=2, runs_connector=True, tasks=(0, 1)),
        ConnectGroupItems(connector="b", runs_connector=True),
    )


def test_a_row_without_anything_in_it_is_nothing() -> None:
    assert read_items([ConnectGroupItems(connector="a", generation=3)]) == {}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([ConnectGroupItems(tasks=(1,))], "A connector has no name."),
        ([ConnectGroupItems(connector="a", generation=-1)], "Generation -1 of a is negative."),
        ([ConnectGroupItems(connector="a", tasks=(-1,))], "Task -1 of a is negative."),
        ([ConnectGroupItems(connector="a", tasks=(1, 1))], "a-1 is there twice."),
        ([ConnectGroupItems(connector="a", runs_connector=True)] * 2, "a is there twice."),
        (
            [
                ConnectGroupItems(connector="a", generation=1, tasks=(0,)),
                ConnectGroupItems(connector="a", generation=2, tasks=(0,)),
            ],
            "a-0 is there twice.",
        ),
    ],
)
def test_items_that_cannot_be(rows: list[ConnectGroupItems], why: str) -> None:
    with pytest.raises(ItemsError) as caught:
        read_items(rows)
    assert str(caught.value) == why


def test_nobody_shares_an_item() -> None:
    taken: dict[tuple[str, int], str] = {}
    taken_once("W1", {resource_of("a", 1): (0, 1), resource_of("a", ITSELF): (ITSELF,)}, taken)
    taken_once("W2", {resource_of("a", 1): (2,), resource_of("b", 0): (0,)}, taken)
    with pytest.raises(ItemsError, match="a-1 is assigned twice, to W1 and to W2"):
        taken_once("W2", {resource_of("a", 9): (1,)}, taken)
    assert (item_name("a", ITSELF), item_name("a", 4)) == ("a", "a-4")
