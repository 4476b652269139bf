"""Worlds of processors: each input in exactly one committed transaction, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mock_coordinator.sim.exactly_once.options import draw_process_options
from mock_coordinator.sim.exactly_once.probes import PROCESS_PROBES
from mock_coordinator.sim.exactly_once.world import simulate_exactly_once
from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.verdict import Failure
from tests.simulation.few import missing

_CHUNK: Final = 3
_CHUNKS: Final = range(1)
_FEW: Final = (32, 54, 58, 73, 85)
"""They take each rare path: ``python -m tests.simulation.few exactly-once`` chooses them."""
_MORE_CHUNKS: Final = range(len(_CHUNKS), 15)
_MORE: Final = pytest.mark.everything("more of the same dice")


@pytest.mark.parametrize(
    "chunk", [*_CHUNKS, *(pytest.param(chunk, marks=_MORE) for chunk in _MORE_CHUNKS)]
)
@pytest.mark.timeout(240)
def test_each_input_is_in_one_committed_transaction(chunk: int) -> None:
    seeds = range(chunk * _CHUNK, (chunk + 1) * _CHUNK)
    results = [simulate_exactly_once(draw_process_options(seed)) for seed in seeds]
    for result in results:
        assert result.records == result.written > 0
        assert result.committed > 0
        assert result.virtual_ms > result.options.safety_ms
    assert len({result.digest for result in results}) == len(results)


@pytest.mark.timeout(120)
def test_a_few_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    found = [simulate_exactly_once(draw_process_options(seed)).probes for seed in _FEW]
    assert missing(PROCESS_PROBES, found) == set(), "python -m tests.simulation.few exactly-once"


def test_the_seeds_differ_in_what_they_try() -> None:
    drawn = [draw_process_options(seed) for seed in range(_MORE_CHUNKS.stop * _CHUNK)]
    assert {options.profile for options in drawn} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert {options.codec for options in drawn} == {True, False}


def test_the_same_seed_gives_the_same_trace() -> None:
    """The cores are functions of their events: the trace has each of them, and each command."""
    options = with_changes(draw_process_options(9), {"safety_ms": "8000"})
    lines: list[str] = []
    again: list[str] = []
    simulate_exactly_once(options, lines.append)
    simulate_exactly_once(options, again.append)
    assert lines == again


def test_bytes_change_nothing() -> None:
    """What passes through the codec does what the objects did."""
    options = with_changes(draw_process_options(4), {"safety_ms": "5000"})
    plain = simulate_exactly_once(replace(options, codec=False))
    coded = simulate_exactly_once(replace(options, codec=True))
    assert coded.digest == plain.digest


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("nothing is wrong, and yet")

    monkeypatch.setattr("mock_coordinator.sim.exactly_once.population.Population.heal", broken)
    options = with_changes(draw_process_options(7), {"safety_ms": "2000", "codec": "true"})
    with pytest.raises(Failure) as failed:
        simulate_exactly_once(options)
    said = str(failed.value).splitlines()
    assert said[0] == "AssertionError: nothing is wrong, and yet"
    assert said[-1].startswith("replay: python -m mock_coordinator.sim --exactly-once --seed 7 --")
    assert said[-1].endswith(" --trace")
