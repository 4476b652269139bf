"""50 workers that join within two seconds, 500 tasks: what is moved for it (``python -m benchmarks
connect_assignors --sequence`` prints more of it)."""

from __future__ import annotations

from benchmarks.connect_sequence import FEWEST, connect, joins
from kip848_client.core.connect import IncrementalCooperativeAssignor


def test_into_an_empty_group_nothing_moves() -> None:
    ledger = connect(IncrementalCooperativeAssignor())(joins(40))
    assert (ledger.computations, ledger.stopped, ledger.moved) == (1, 0, 0)
    # the last one joins after 1.9 s, and 3 s are waited for another
    assert 4_900 <= ledger.stable_ms <= 6_000


def test_beside_one_that_runs_everything_nothing_moves_twice() -> None:
    """It hears of them by its next heartbeat, when all have come. (When it hears of the first ones
    before, some move twice: docs/decisions/0025 has the figures.)"""
    ledger = connect(IncrementalCooperativeAssignor())(joins(22_500))
    assert ledger.moved == FEWEST
