"""The vote for the assignor, and the subscription type."""

from __future__ import annotations

import pytest

from kip848_client.core.assignors import (
    SubscriptionType,
    described_assignor,
    elect_assignor,
    subscription_type,
)

HOMOGENEOUS, HETEROGENEOUS = SubscriptionType.HOMOGENEOUS, SubscriptionType.HETEROGENEOUS


def test_without_a_vote_it_is_the_default() -> None:
    assert elect_assignor({}, "uniform") == "uniform"
    assert elect_assignor({"range": 1}, "uniform", withdrawn="range") == "uniform"
    assert elect_assignor({"range": 0}, "uniform") == "uniform"
    assert described_assignor({}, "uniform") == "uniform"


def test_the_majority_wins() -> None:
    assert elect_assignor({"uniform": 1, "range": 2}, "uniform") == "range"
    assert elect_assignor({}, "uniform", cast="range") == "range"
    assert elect_assignor({"uniform": 2, "range": 1}, "x", withdrawn="uniform", cast="range") == (
        "range"
    )
    assert described_assignor({"uniform": 1, "range": 2}, "uniform") == "range"


def test_an_unknown_withdrawn_vote_is_ignored() -> None:
    assert elect_assignor({"range": 1}, "uniform", withdrawn="uniform") == "range"


@pytest.mark.parametrize(
    ("votes", "withdrawn", "cast", "winner"),
    [
        # (values from java.util.HashMap: copy of the counters, then Map.compute)
        ({"uniform": 1, "range": 1}, None, None, "uniform"),
        ({"uniform": 1}, None, "range", "range"),
        ({"range": 1}, None, "uniform", "uniform"),
        ({"uniform": 1, "range": 1}, "range", "range", "range"),
        ({"uniform": 1, "range": 1}, "uniform", "uniform", "uniform"),
        ({"uniform": 2, "range": 2}, "range", "range", "uniform"),
        ({"b": 1}, None, "a", "b"),
        ({"a": 1}, None, "b", "b"),
        ({"alpha": 1}, None, "zeta", "zeta"),
        ({"zeta": 1}, None, "alpha", "zeta"),
        ({"x": 1, "y": 1}, None, "z", "x"),
        ({"uniform": 1, "mine": 1, "range": 1}, None, "other", "mine"),
    ],
)
def test_ties_follow_the_java_map(
    votes: dict[str, int], withdrawn: str | None, cast: str | None, winner: str
) -> None:
    assert elect_assignor(votes, "-", withdrawn=withdrawn, cast=cast) == winner


def test_describe_takes_the_first_of_the_timeline_order() -> None:
    assert described_assignor({"uniform": 1, "range": 1}, "-") == "uniform"
    assert described_assignor({"b": 1, "a": 1}, "-") == "b"


@pytest.mark.parametrize(
    ("members", "names", "regexes", "expected"),
    [
        (3, {}, (), HOMOGENEOUS),
        (2, {"foo": (2, 0), "bar": (2, 0)}, (), HOMOGENEOUS),
        (2, {"foo": (2, 0), "bar": (1, 0)}, (), HETEROGENEOUS),
        (3, {"foo": (2, 0)}, (), HETEROGENEOUS),  # one member subscribes to nothing
        (2, {"foo": (0, 1)}, (2,), HOMOGENEOUS),
        (2, {}, (2,), HOMOGENEOUS),  # resolved to nothing yet
        (2, {"foo": (0, 1)}, (1,), HETEROGENEOUS),
        (2, {"foo": (0, 1)}, (1, 1), HETEROGENEOUS),
        (2, {"foo": (1, 1)}, (2,), HETEROGENEOUS),  # names beside the regex
    ],
)
def test_subscription_type(
    members: int,
    names: dict[str, tuple[int, int]],
    regexes: tuple[int, ...],
    expected: SubscriptionType,
) -> None:
    assert subscription_type(members, names, regexes) is expected
