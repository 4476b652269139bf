"""Worlds of Connect workers: who runs what under every trouble there is, then healing, and calm."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.verdict import Failure
from mock_coordinator.sim.workers.options import draw_worker_options
from mock_coordinator.sim.workers.probes import WORKER_PROBES
from mock_coordinator.sim.workers.world import simulate_workers
from tests.simulation.few import missing

_FEW: Final = (0, 6, 11, 39, 44, 49, 52, 53, 68, 136)
"""They take each rare path: ``python -m tests.simulation.few workers`` chooses them."""
_CHUNK: Final = 10
_MORE: Final = pytest.mark.everything("more of the same dice")


def test_a_few_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    results = [simulate_workers(draw_worker_options(seed)) for seed in _FEW]
    found = [result.probes for result in results]
    assert missing(WORKER_PROBES, found) == set(), "python -m tests.simulation.few workers"
    moves, ideal = sum(each.moves for each in results), sum(each.ideal for each in results)
    assert 0 < ideal <= moves <= ideal * 1.1


@_MORE
@pytest.mark.parametrize("chunk", range(5))
@pytest.mark.timeout(240)
def test_nothing_runs_twice_and_nothing_rests_for_long(chunk: int) -> None:
    seeds = range(1_000 + chunk * _CHUNK, 1_000 + (chunk + 1) * _CHUNK)
    results = [simulate_workers(draw_worker_options(seed)) for seed in seeds]
    assert all(result.records for result in results)
    assert {result.options.profile for result in results} == {"4.0", "4.1", "4.2", "4.3", "4.4"}


def test_the_same_seed_gives_the_same_trace() -> None:
    lines: list[str] = []
    again: list[str] = []
    simulate_workers(draw_worker_options(3), lines.append)
    simulate_workers(draw_worker_options(3), again.append)
    assert lines == again


def test_bytes_change_nothing() -> None:
    """What passes through the codec does what the objects did."""
    options = draw_worker_options(3)
    plain = simulate_workers(replace(options, codec=False))
    coded = simulate_workers(replace(options, codec=True))
    assert coded.digest == plain.digest


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("nothing is wrong, and yet")

    monkeypatch.setattr("mock_coordinator.sim.workers.population.Population.heal", broken)
    options = with_changes(draw_worker_options(3), {"safety_ms": "2000", "workers": "1"})
    with pytest.raises(Failure) as failed:
        simulate_workers(options)
    said = str(failed.value).splitlines()
    assert said[0] == "AssertionError: nothing is wrong, and yet"
    assert said[-1].startswith("replay: python -m mock_coordinator.sim --workers --seed 3 --set ")
    assert said[-1].endswith(" --trace")
