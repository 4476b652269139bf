"""200 worlds: faults and a busy workload, then healing; every invariant holds in each."""

from __future__ import annotations

import pytest

from mock_coordinator.sim import PROBES
from tests.simulation.worlds import CHUNKS, all_results, play_chunk


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.timeout(240)
def test_every_invariant_holds_and_every_group_comes_to_rest(chunk: int) -> None:
    for result in play_chunk(chunk):
        assert result.lines > 0
        assert result.virtual_ms > result.options.safety_ms


@pytest.mark.timeout(600)
def test_the_seeds_reach_every_rare_path() -> None:
    """A path that no seed takes is not tested by any of them."""
    reached = {name for result in all_results() for name, count in result.probes.items() if count}
    assert reached == set(PROBES)


@pytest.mark.timeout(600)
def test_the_seeds_differ_in_what_they_try() -> None:
    results = all_results()
    assert {result.options.profile for result in results} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert any(result.options.codec for result in results)
    assert len({result.digest for result in results}) == len(results)
    assert sum(result.records for result in results) > 100_000
