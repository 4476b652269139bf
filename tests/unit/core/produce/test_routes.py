"""Where records without a key go, and when they go elsewhere."""

from __future__ import annotations

from kip848_client.core.produce._routes import Route
from tests.unit.core.produce._harness import tp


def _route(*led: int, drawn: tuple[int, ...], waiting: tuple[int, ...] = (0,) * 7) -> Route:
    """Of a topic in which these have a leader."""
    numbers = iter(drawn)
    route = Route(lambda _: next(numbers), 100, lambda at: waiting[at.partition])
    route.learn(tuple(map(tp, range(7))), [tp(number) for number in led])
    return route


def test_another_partition_is_chosen_after_a_batch_of_bytes() -> None:
    route = _route(4, 5, drawn=(0, 0, 0, 0))
    assert route.of(None) == tp(4)
    route.closed(tp(4), 60, full=False)
    route.closed(tp(5), 60, full=True)
    assert route.of(None) == tp(4)
    route.closed(tp(4), 40, full=False)
    assert route.of(None) == tp(5)


def test_another_partition_is_chosen_when_a_batch_is_full() -> None:
    route = _route(4, 5, drawn=(0, 0, 0, 0))
    assert route.of(None) == tp(4)
    route.closed(tp(4), 60, full=True)
    assert route.of(None) == tp(5)
    route.closed(tp(5), 60, full=False)
    assert route.of(None) == tp(5)  # what was counted of the one before does not count here


def test_the_same_partition_is_not_chosen_twice_in_a_row() -> None:
    route = _route(4, 5, drawn=(0,) * 6)
    assert route.of(None) == tp(4)
    route.closed(tp(4), 1, full=True)
    assert route.of(None) == tp(5)
    route.closed(tp(5), 1, full=True)
    assert route.of(None) == tp(4)


def test_the_same_partition_is_chosen_where_it_is_the_only_one() -> None:
    route = _route(5, drawn=(0,) * 4)
    assert route.of(None) == tp(5)
    route.closed(tp(5), 1, full=True)
    assert route.of(None) == tp(5)


def test_of_two_the_one_with_fewer_batches_is_chosen() -> None:
    waiting = (0, 0, 0, 0, 3, 1, 0)
    assert _route(4, 5, 6, drawn=(0, 1), waiting=waiting).of(None) == tp(5)
    assert _route(4, 5, 6, drawn=(1, 0), waiting=waiting).of(None) == tp(5)


def test_a_partition_that_is_gone_is_left() -> None:
    route = _route(4, drawn=(0,) * 4)
    assert route.of(None) == tp(4)
    route.learn((tp(0), tp(1)), [tp(1)])
    assert route.of(None) == tp(1)


def test_where_nothing_has_a_leader_any_will_do() -> None:
    assert _route(drawn=(6, 6)).of(None) == tp(6)
