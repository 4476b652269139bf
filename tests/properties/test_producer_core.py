"""Whatever brokers and networks do, a producer writes each record at most once and in order, tells
the end of each batch once and as it is, and has nothing left at the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.produce._model import ProduceSettings
from tests.support.examples import examples
from tests.support.producer_world import Odds, ProducerWorld

_SEEDS = st.integers(0, 1 << 40)
_TEN_RECORDS_BYTES = 61 + 10 * 13
_SETTINGS = {
    "patient": ProduceSettings(batch_bytes=_TEN_RECORDS_BYTES, request_bytes=1_000),
    "impatient": ProduceSettings(
        batch_bytes=_TEN_RECORDS_BYTES, delivery_timeout_ms=2_000, linger_ms=0, in_flight_max=3
    ),
    "little memory": ProduceSettings(
        batch_bytes=_TEN_RECORDS_BYTES, buffer_bytes=700, delivery_timeout_ms=10_000
    ),
    "one at a time": ProduceSettings(batch_bytes=_TEN_RECORDS_BYTES, in_flight_max=1),
}


@pytest.mark.parametrize("name", _SETTINGS)
@settings(max_examples=examples(120))
@given(seed=_SEEDS)
def test_each_record_is_written_at_most_once_and_in_order(name: str, seed: int) -> None:
    world = ProducerWorld(seed, _SETTINGS[name])
    world.run(300)
    world.check()


@settings(max_examples=examples(60))
@given(seed=_SEEDS)
def test_nothing_fails_where_answers_are_lost_and_brokers_forget(seed: int) -> None:
    """A patient producer gets everything through what passes."""
    odds = Odds(refused=0, bad=0, too_large=0, forgotten=0.1)
    world = ProducerWorld(seed, _SETTINGS["patient"], odds)
    world.run(300)
    world.check()
    errors = [each.error for each in world.reported.values() if each.error is not None]
    assert not errors


@pytest.mark.parametrize("acks", [0, 1, -1])
@settings(max_examples=examples(40))
@given(seed=_SEEDS)
def test_without_idempotence_every_batch_is_told_once(acks: int, seed: int) -> None:
    plain = ProduceSettings(
        batch_bytes=_TEN_RECORDS_BYTES, idempotent=False, acks=acks, delivery_timeout_ms=10_000
    )
    world = ProducerWorld(seed, plain)
    world.run(200)
    world.check_told()
