"""Hundreds of worlds: faults and a busy workload, then healing; every invariant holds in each."""

from __future__ import annotations

import os

import pytest

from mock_coordinator.sim import PROBES, draw_options, with_changes
from tests.simulation.worlds import CHUNKS, MORE_CHUNKS, PlayedWorlds, failure_of

_MORE = pytest.mark.everything("more of the same dice")
_TWICE_AS_MANY = pytest.mark.everything("it takes twice the seeds of every run")


@pytest.fixture(scope="session")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> PlayedWorlds:
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # each worker has a folder of its own in it
    return PlayedWorlds(base / "worlds")


@pytest.mark.parametrize(
    "chunk", [*CHUNKS, *(pytest.param(chunk, marks=_MORE) for chunk in MORE_CHUNKS)]
)
@pytest.mark.timeout(240)
def test_every_invariant_holds_and_every_group_comes_to_rest(
    chunk: int, worlds: PlayedWorlds
) -> None:
    for result in worlds.chunk(chunk):
        assert result.lines > 0
        assert result.virtual_ms > result.options.safety_ms


def test_a_position_that_a_reset_chose_need_not_be_committed() -> None:
    """It was found after the last commit of a member that had unsubscribed."""
    changes = {"members": "3", "topics": "2", "pattern": "0.6"}
    often = {"safety_ms": "25000", "act_every_ms": "1200"}
    assert failure_of(with_changes(draw_options(669), changes | often)) is None


@_TWICE_AS_MANY
@pytest.mark.timeout(600)
def test_the_seeds_reach_every_rare_path(worlds: PlayedWorlds) -> None:
    """A path that no seed takes is not tested by any of them."""
    reached = {name for result in worlds.varied() for name, count in result.probes.items() if count}
    assert reached == set(PROBES)


@_TWICE_AS_MANY
@pytest.mark.timeout(600)
def test_the_seeds_differ_in_what_they_try(worlds: PlayedWorlds) -> None:
    results = worlds.varied()
    assert {result.options.profile for result in results} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert any(result.options.codec for result in results)
    assert len({result.digest for result in results}) == len(results)
    assert sum(result.records for result in results) > 100_000
