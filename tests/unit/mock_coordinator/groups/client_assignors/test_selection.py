"""Which assignor, and who runs it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mock_coordinator.core.groups.client_assignors.selection import Offer, candidates, choose
from mock_coordinator.core.groups.records.assignor_values import ClientAssignor


def one(low: int, high: int, used: int | None = None, name: str = "mine") -> ClientAssignor:
    return ClientAssignor(name, low, high, metadata_version=high if used is None else used)


def offer(*names: str) -> Offer:
    return Offer(tuple(one(0, 1, name=name) for name in names))


def test_an_assignor_counts_only_when_all_offer_it() -> None:
    assert candidates({"A": offer("x", "y"), "B": offer("y", "z")}) == ["y"]
    assert candidates({"A": offer("x"), "B": offer("y")}) == []
    assert candidates({"A": offer("x"), "B": offer()}) == []
    assert candidates({}) == []


def test_members_vote_for_the_first_of_their_list() -> None:
    offers = {"A": offer("x", "y"), "B": offer("y", "x"), "C": offer("y", "x")}
    assert candidates(offers) == ["y", "x"]


def test_equal_votes_go_to_the_better_places_then_to_the_name() -> None:
    assert candidates({"A": offer("x", "y"), "B": offer("y", "x")}) == ["x", "y"]
    offers = {"A": offer("z", "y", "x"), "B": offer("x", "y", "z"), "C": offer("y", "z", "x")}
    # one vote each; the places add up to z: 0+2+1, y: 1+1+0, x: 2+0+2
    assert candidates(offers) == ["y", "z", "x"]


@pytest.mark.parametrize("order", ["ABC", "CBA", "BAC"])
def test_the_one_that_reads_all_versions_computes(order: str) -> None:
    ranges = {"A": one(1, 5), "B": one(3, 4), "C": one(2, 4)}
    choice = choose({member_id: Offer((ranges[member_id],)) for member_id in order})
    assert choice is not None
    assert choice.member_id == "A"


def test_versions_in_use_decide_who_can() -> None:
    """B reads less than A offers, but all that is used."""
    offers = {"A": Offer((one(1, 5, 3),), can_compute=False), "B": Offer((one(3, 4, 3),))}
    choice = choose(offers)
    assert choice is not None
    assert choice.member_id == "B"
    assert choose({"A": Offer((one(1, 3, 1),)), "B": Offer((one(2, 5, 5),))}) is None


def test_the_last_one_goes_on_unless_it_failed() -> None:
    offers = {name: Offer((one(0, 1),)) for name in "ABC"}

    def chosen(excluded: set[str], last: str | None) -> str:
        choice = choose(offers, excluded=excluded, last=last)
        assert choice is not None
        return choice.member_id

    assert chosen(set(), None) == "A"
    assert chosen(set(), "B") == "B"
    assert chosen({"B"}, "B") == "A"
    assert chosen({"A", "B", "C"}, "A") == "B", "when all failed they take turns"


def test_without_anybody_for_the_first_the_next_assignor_is_used() -> None:
    offers = {
        "A": Offer((one(1, 3, 1, "x"), one(0, 0, name="y"))),
        "B": Offer((one(2, 5, 5, "x"), one(0, 0, name="y"))),
    }
    choice = choose(offers)
    assert choice is not None
    assert choice.assignor == "y"


ranges = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)).map(sorted)
cast = st.dictionaries(
    st.sampled_from("ABCDE"),
    st.tuples(ranges, st.booleans()).map(
        lambda each: Offer((one(each[0][0], each[0][2], each[0][1]),), can_compute=each[1])
    ),
    min_size=1,
)


@given(cast, st.sets(st.sampled_from("ABCDE")), st.none() | st.sampled_from("ABCDE"))
def test_whoever_computes_can(offers: dict[str, Offer], failed: set[str], last: str | None) -> None:
    choice = choose(offers, excluded=failed, last=last)
    used = [each.assignors[0].metadata_version for each in offers.values()]
    able = {
        member_id
        for member_id, each in offers.items()
        if each.can_compute
        and each.assignors[0].minimum_version <= min(used)
        and each.assignors[0].maximum_version >= max(used)
    }
    if choice is None:
        assert not able
    else:
        assert choice.member_id in able
        assert choice.member_id not in failed or able <= failed
