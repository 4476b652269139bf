"""How tests are dealt to workers."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.support.dealing import deal

QUICK: Final = "quick"


def home(item: str) -> str | None:
    name, _, rest = item.partition("/")
    return name if rest else None


def dealt(items: list[str], workers: int) -> list[str]:
    return deal(items, workers, home=home, is_slow=lambda item: not item.startswith(QUICK))


def test_each_worker_begins_with_a_home_and_ends_with_quick_tests() -> None:
    items = ["quick1", "a/1", "slow1", "b/1", "quick2", "a/2", "quick3", "b/2"]

    assert dealt(items, 2) == ["a/1", "a/2", "slow1", "quick1", "b/1", "b/2", "quick2", "quick3"]


def test_a_third_home_goes_to_the_worker_with_the_least() -> None:
    items = ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"]

    assert dealt(items, 2) == ["a/1", "a/2", "a/3", "b/1", "b/2", "c/1"]


def test_one_worker_has_all() -> None:
    assert dealt(["quick1", "slow1", "a/1"], 1) == ["a/1", "slow1", "quick1"]


@given(
    st.lists(st.sampled_from(["quick", "slow", "a/", "b/", "c/"]), max_size=40),
    st.integers(min_value=1, max_value=5),
)
def test_nothing_is_lost_or_dealt_twice(kinds: list[str], workers: int) -> None:
    items = [f"{kind}{number}" for number, kind in enumerate(kinds)]

    assert sorted(dealt(items, workers)) == sorted(items)
