"""Many worlds: faults and a busy workload, then healing; every invariant holds in each."""

from __future__ import annotations

from typing import Final

import pytest

from mock_coordinator.sim import PROBES, GroupWorld, draw_options, simulate
from tests.simulation.few import missing
from tests.simulation.planted import failure_of

_CHUNK: Final = 5
_QUICK: Final = 1
_CHUNKS: Final = range(24)
_FEW: Final = (
    4,
    11,
    14,
    41,
    42,
    55,
    76,
    91,
    93,
    101,
    106,
    121,
    124,
    143,
    145,
    162,
    166,
    174,
    185,
    198,
)
"""They take each rare path: ``python -m tests.simulation.few groups`` chooses them."""
_MORE: Final = pytest.mark.everything("more of the same dice")


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=() if chunk < _QUICK else _MORE) for chunk in _CHUNKS]
)
@pytest.mark.timeout(240)
def test_every_invariant_holds_and_every_group_comes_to_rest(chunk: int) -> None:
    results = [simulate(draw_options(seed)) for seed in range(chunk * _CHUNK, (chunk + 1) * _CHUNK)]
    for result in results:
        assert result.lines > 0
        assert result.virtual_ms > result.options.safety_ms
    assert len({result.digest for result in results}) == len(results)
    assert sum(result.records for result in results) > 1_000


def test_a_position_that_a_reset_chose_need_not_be_committed() -> None:
    """It was found after the last commit of a member that had unsubscribed."""
    changes = {"members": "3", "topics": "2", "pattern": "0.6"}
    often = {"safety_ms": "25000", "act_every_ms": "1200"}
    assert failure_of(GroupWorld, 669, changes | often) is None


@pytest.mark.everything("it takes more seeds than every run")
@pytest.mark.timeout(300)
def test_a_few_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    found = [simulate(draw_options(seed)).probes for seed in _FEW]
    assert missing(PROBES, found) == set(), "python -m tests.simulation.few groups"


def test_the_seeds_differ_in_what_they_try() -> None:
    drawn = [draw_options(seed) for seed in range(len(_CHUNKS) * _CHUNK)]
    assert {options.profile for options in drawn} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert {options.codec for options in drawn} == {True, False}
