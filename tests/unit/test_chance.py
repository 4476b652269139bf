"""The application's random numbers are its own."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from kip848_client import Consumer
from mock_coordinator import MockBroker

_SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.asyncio
async def test_who_seeds_gets_the_same_numbers_while_a_consumer_runs() -> None:
    random.seed(848)
    wanted = [random.random() for _ in range(3)]
    random.seed(848)
    found = [random.random()]
    async with (
        MockBroker({"t": 1}) as broker,
        Consumer("t", bootstrap_servers=broker.bootstrap, group_id="g") as consumer,
    ):
        await consumer.getmany(timeout_ms=300)
        found.append(random.random())
    found.append(random.random())
    assert found == wanted


def test_nobody_takes_from_the_generator_of_all() -> None:
    taken = re.compile(
        r"\brandom\.(?!Random\b|SystemRandom\b)[a-z]+\(|^from random import [a-z]", re.MULTILINE
    )
    found = [path.name for path in _SOURCE.rglob("*.py") if taken.search(path.read_text())]
    assert not found
