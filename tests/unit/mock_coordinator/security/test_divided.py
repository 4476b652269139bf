"""What rules are written with: one verdict for each item of a request."""

from __future__ import annotations

from mock_coordinator.core.authorization.requester import divided


def test_items_keep_their_order_and_are_judged_once() -> None:
    asked: list[int] = []

    def is_even(number: int) -> bool:
        asked.append(number)
        return number % 2 == 0

    assert divided([4, 1, 2, 1, 4, 3], is_even) == ((4, 2, 4), (1, 1, 3))
    assert asked == [4, 1, 2, 1, 4, 3]
