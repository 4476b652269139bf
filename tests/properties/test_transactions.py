"""Random lives of a transactional id: what is told of a transaction is what became of it.

The broker is the bundled one, whose transactions are compared with Kafka's elsewhere. Answers are
lost before and after their effect, requests arrive late, coordinators turn away, transactions time
out, another producer takes the id, the application crashes, the version changes.
"""

from __future__ import annotations

import pytest

from tests.support.examples import examples
from tests.support.transaction_core_world import CoreWorld
from tests.support.transaction_world import World, check
from tests.unit.mock_coordinator.transactions.transactions_harness import (
    TOPIC,
    TransactionsHarness,
)

LEVELS = {"v1": (1,), "v2": (2,), "both": (1, 2)}
LIVES = examples(80)
"""A seed each."""


class Bundled:
    """The bundled broker."""

    topic, group, transactional_id = TOPIC, "g", "x"

    def __init__(self, profile: str) -> None:
        self.raw = TransactionsHarness(
            profile=profile,
            transaction_abort_timed_out_transaction_cleanup_interval_ms="100",
        )
        self.now_ms = self.raw.harness.clock
        self.advance = self.raw.advance
        self.values = self.raw.values


@pytest.mark.parametrize("kind", [World, CoreWorld])
@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_what_is_told_is_what_became_of_it(profile: str, levels: str, kind: type[World]) -> None:
    told: set[str] = set()
    for seed in range(LIVES):
        world = kind(seed, Bundled(profile), levels=LEVELS[levels])
        try:
            check(world.run())
        except AssertionError as err:
            raise AssertionError(f"seed {seed}: {err}") from err
        told |= {each.told for each in world.outcomes}
    assert told == {"committed", "not committed", "in doubt"}, "these lives are too calm"


@pytest.mark.parametrize("kind", [World, CoreWorld])
@pytest.mark.parametrize("levels", LEVELS)
def test_a_calm_life_commits_everything(levels: str, kind: type[World]) -> None:
    world = kind(1, Bundled("4.4"), levels=LEVELS[levels], calm=True).run(30)
    check(world)
    assert {each.told for each in world.outcomes} == {"committed"}
