"""``enforce_rebalance`` says that it does nothing, and does nothing (KIP-848)."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kip848_client import Consumer


@pytest.mark.parametrize(
    ("given", "said"),
    [((), "enforce_rebalance()"), (("more load",), "enforce_rebalance(reason='more load')")],
)
def test_it_warns_and_changes_nothing(
    caplog: pytest.LogCaptureFixture, given: tuple[str, ...], said: str
) -> None:
    consumer: Consumer[Any, Any] = Consumer("t", group_id="g")
    with caplog.at_level(logging.WARNING, "kip848_client"):
        consumer.enforce_rebalance(*given)
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert said in record.getMessage()
    assert "group g" in record.getMessage()
    assert "metadata()" in record.getMessage()
    assert not consumer.was_started


def test_what_it_is_given_may_be_by_name() -> None:
    consumer: Consumer[Any, Any] = Consumer("t", group_id="g")
    consumer.enforce_rebalance(reason=None)
