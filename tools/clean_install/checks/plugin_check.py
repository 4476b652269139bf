"""A test of a user: nothing but the installed plugin gives it its broker."""

from __future__ import annotations

from typing import Any

import pytest

__all__: list[str] = []


@pytest.mark.mock_broker(topics={"orders": 1})
def test_a_record_is_there(mock_broker: Any) -> None:
    """The broker of the fixture takes it."""
    assert mock_broker.produce("orders", b"1") == 0
