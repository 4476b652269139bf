"""Worlds of fetching: the way of a record under every trouble there is, then healing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from mock_coordinator.sim.fetching.options import draw_fetch_options
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.fetching.world import simulate_fetching
from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.verdict import Failure
from tests.simulation.few import missing

_CHUNK: Final = 10
_CHUNKS: Final = range(1)
_FEW: Final = (4, 19, 24, 29, 30, 46, 47, 48, 79, 83, 84, 92, 98, 102)
"""They take each rare path: ``python -m tests.simulation.few fetching`` chooses them."""
_MORE_CHUNKS: Final = range(len(_CHUNKS), 15)
_MORE: Final = pytest.mark.everything("more of the same dice")


@pytest.mark.parametrize(
    "chunk", [*_CHUNKS, *(pytest.param(chunk, marks=_MORE) for chunk in _MORE_CHUNKS)]
)
@pytest.mark.timeout(240)
def test_every_record_comes_once_and_in_order(chunk: int) -> None:
    seeds = range(chunk * _CHUNK, (chunk + 1) * _CHUNK)
    results = [simulate_fetching(draw_fetch_options(seed)) for seed in seeds]
    for result in results:
        assert result.lines > 0
        assert result.virtual_ms > result.options.safety_ms
    assert len({result.digest for result in results}) == len(results)
    assert sum(result.records for result in results) > 100


@pytest.mark.everything("it takes more seeds than every run")
@pytest.mark.timeout(300)
def test_a_few_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    found = [simulate_fetching(draw_fetch_options(seed)).probes for seed in _FEW]
    assert missing(FETCH_PROBES, found) == set(), "python -m tests.simulation.few fetching"


def test_the_seeds_differ_in_what_they_try() -> None:
    drawn = [draw_fetch_options(seed) for seed in range(_MORE_CHUNKS.stop * _CHUNK)]
    assert {options.profile for options in drawn} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert {options.codec for options in drawn} == {True, False}


@pytest.mark.parametrize("seed", [304, 406, 413])
def test_what_failed_once_holds(seed: int) -> None:
    """Without sessions a topic waited behind its neighbours (406), and an oversized batch for ever
    (413); of a topic that was dropped, the hint of a leader of former times was believed (304)."""
    assert simulate_fetching(draw_fetch_options(seed)).records


@pytest.mark.timeout(240)  # it computes for seconds, and others may, too
def test_the_same_seed_gives_the_same_trace() -> None:
    """The core is a function of its events: the trace has each of them, and each command."""
    lines: list[str] = []
    again: list[str] = []
    simulate_fetching(draw_fetch_options(6), lines.append)
    simulate_fetching(draw_fetch_options(6), again.append)
    assert lines == again


@pytest.mark.parametrize("seed", [0, 6, 11])
def test_bytes_change_nothing(seed: int) -> None:
    """What passes through the codec does what the objects did."""
    options = draw_fetch_options(seed)
    plain = simulate_fetching(replace(options, codec=False))
    coded = simulate_fetching(replace(options, codec=True))
    assert coded.digest == plain.digest


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("nothing is wrong, and yet")

    monkeypatch.setattr("mock_coordinator.sim.fetching.user.User.heal", broken)
    options = with_changes(draw_fetch_options(7), {"safety_ms": "15000", "codec": "true"})
    with pytest.raises(Failure) as failed:
        simulate_fetching(options)
    said = str(failed.value).splitlines()
    assert said[0] == "AssertionError: nothing is wrong, and yet"
    assert said[1] == "seed 7"
    assert said[-1].startswith("replay: python -m mock_coordinator.sim --fetching --seed 7 --set ")
    assert said[-1].endswith(" --trace")
