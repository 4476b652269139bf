"""Worlds of producers: records and transactions under every trouble there is, then healing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mock_coordinator.sim.producing.options import draw_produce_options
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES
from mock_coordinator.sim.producing.world import simulate_producing
from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.verdict import Failure
from tests.simulation.few import missing

_CHUNK: Final = 5
_CHUNKS: Final = range(1)
_FEW: Final = (1, 7, 13, 16, 19, 40, 45, 72, 95, 105, 114, 118, 131, 142, 143)
"""They take each rare path: ``python -m tests.simulation.few producing`` chooses them."""
_MORE_CHUNKS: Final = range(len(_CHUNKS), 20)
_MORE: Final = pytest.mark.everything("more of the same dice")


@pytest.mark.parametrize(
    "chunk", [*_CHUNKS, *(pytest.param(chunk, marks=_MORE) for chunk in _MORE_CHUNKS)]
)
@pytest.mark.timeout(240)
def test_what_users_are_told_is_so(chunk: int) -> None:
    seeds = range(chunk * _CHUNK, (chunk + 1) * _CHUNK)
    results = [simulate_producing(draw_produce_options(seed)) for seed in seeds]
    # there are worlds in which nothing gets through while records are sent
    assert sum(result.records for result in results) > 0
    for result in results:
        assert result.lines > 0
        assert result.virtual_ms > result.options.safety_ms
    assert len({result.digest for result in results}) == len(results)
    assert sum(result.committed for result in results) > 10


@pytest.mark.timeout(120)
def test_a_few_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    found = [simulate_producing(draw_produce_options(seed)).probes for seed in _FEW]
    assert missing(PRODUCE_PROBES, found) == set(), "python -m tests.simulation.few producing"


def test_the_seeds_differ_in_what_they_try() -> None:
    drawn = [draw_produce_options(seed) for seed in range(_MORE_CHUNKS.stop * _CHUNK)]
    assert {options.profile for options in drawn} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert {options.codec for options in drawn} == {True, False}


def test_the_same_seed_gives_the_same_trace() -> None:
    """The core is a function of its events: the trace has each of them, and each command."""
    lines: list[str] = []
    again: list[str] = []
    simulate_producing(draw_produce_options(7), lines.append)
    simulate_producing(draw_produce_options(7), again.append)
    assert lines == again


@pytest.mark.parametrize("seed", [5, pytest.param(8, marks=_MORE), pytest.param(9, marks=_MORE)])
def test_bytes_change_nothing(seed: int) -> None:
    """What passes through the codec does what the objects did."""
    options = draw_produce_options(seed)
    plain = simulate_producing(replace(options, codec=False))
    coded = simulate_producing(replace(options, codec=True))
    assert coded.digest == plain.digest


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("nothing is wrong, and yet")

    monkeypatch.setattr("mock_coordinator.sim.producing.population.Population.heal", broken)
    options = with_changes(draw_produce_options(7), {"safety_ms": "2000", "codec": "true"})
    with pytest.raises(Failure) as failed:
        simulate_producing(options)
    said = str(failed.value).splitlines()
    assert said[0] == "AssertionError: nothing is wrong, and yet"
    assert said[1] == "seed 7"
    assert said[-1].startswith("replay: python -m mock_coordinator.sim --producing --seed 7 --set ")
    assert said[-1].endswith(" --trace")
