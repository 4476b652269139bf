"""What holds for each kind of simulated world beside groups: no seed fails, the rare paths are
taken, and a seed is a world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from mock_coordinator.sim.exactly_once.world import ProcessResult, ProcessWorld
from mock_coordinator.sim.fetching.world import FetchResult, FetchWorld
from mock_coordinator.sim.producing.world import ProduceResult, ProduceWorld
from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.workers.world import WorkerResult, WorkerWorld
from mock_coordinator.sim.world import World
from tests.simulation.few import missing
from tests.simulation.planted import failure_of

_MORE: Final = pytest.mark.everything("more of the same dice")
_RARE: Final = pytest.mark.everything("it takes more seeds than every run")


def _has_read(results: Sequence[FetchResult]) -> None:
    assert all(result.lines > 0 for result in results)
    assert sum(result.records for result in results) > 100


def _is_as_reported(results: Sequence[ProduceResult]) -> None:
    # there are worlds in which nothing gets through while records are sent
    assert sum(result.records for result in results) > 0
    assert sum(result.committed for result in results) > 10


def _is_processed_once(results: Sequence[ProcessResult]) -> None:
    for result in results:
        assert result.records == result.written > 0
        assert result.committed > 0


def _runs(results: Sequence[WorkerResult]) -> None:
    assert all(result.records for result in results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of world. ``chunks`` of ``chunk`` seeds are played, the first ``quick`` of them in
    every run."""

    world: type[World[Any, Any]]
    check: Callable[[Any], None]
    chunk: int
    chunks: range
    quick: int
    few: tuple[int, ...]
    """They take each rare path: ``python -m tests.simulation.few`` chooses them."""
    few_are_quick: bool = True
    seed: int
    """Of a short world."""
    short: Mapping[str, str]
    breaks: str
    """What is broken to have a failure."""
    coded: tuple[int, ...]
    """Seeds that are played as objects and as bytes, the first one in every run."""


KINDS: Final = {
    "fetching": Kind(
        world=FetchWorld,
        check=_has_read,
        chunk=10,
        chunks=range(15),
        quick=1,
        few=(4, 19, 24, 29, 30, 46, 47, 48, 79, 83, 84, 92, 98, 102),
        few_are_quick=False,
        seed=6,
        short={},
        breaks="mock_coordinator.sim.fetching.user.User.heal",
        coded=(0, 6, 11),
    ),
    "producing": Kind(
        world=ProduceWorld,
        check=_is_as_reported,
        chunk=5,
        chunks=range(20),
        quick=1,
        few=(1, 7, 13, 16, 19, 40, 45, 72, 95, 105, 114, 118, 131, 142, 143),
        seed=7,
        short={},
        breaks="mock_coordinator.sim.producing.processes.Processes.heal",
        coded=(5, 8, 9),
    ),
    "exactly-once": Kind(
        world=ProcessWorld,
        check=_is_processed_once,
        chunk=3,
        chunks=range(15),
        quick=1,
        few=(32, 54, 58, 73, 85),
        seed=9,
        short={"safety_ms": "8000"},
        breaks="mock_coordinator.sim.exactly_once.processes.Processes.heal",
        coded=(4,),
    ),
    "workers": Kind(
        world=WorkerWorld,
        check=_runs,
        chunk=10,
        chunks=range(100, 105),
        quick=0,
        few=(0, 6, 11, 39, 44, 49, 52, 53, 68, 136),
        seed=3,
        short={},
        breaks="mock_coordinator.sim.workers.processes.Processes.heal",
        coded=(3,),
    ),
}

each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize(
    ("kind", "chunk"),
    [
        pytest.param(kind, chunk, id=f"{name}-{chunk}", marks=() if n < kind.quick else _MORE)
        for name, kind in KINDS.items()
        for n, chunk in enumerate(kind.chunks)
    ],
)
@pytest.mark.timeout(240)
def test_every_invariant_holds(kind: Kind, chunk: int) -> None:
    seeds = range(chunk * kind.chunk, (chunk + 1) * kind.chunk)
    results = [kind.world.play(kind.world.draw(seed)) for seed in seeds]
    kind.check(results)
    assert all(result.virtual_ms > result.options.safety_ms for result in results)
    assert len({result.digest for result in results}) == len(results)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, id=name, marks=() if kind.few_are_quick else _RARE)
        for name, kind in KINDS.items()
    ],
)
@pytest.mark.timeout(300)
def test_a_few_seeds_reach_every_rare_path(name: str, kind: Kind) -> None:
    """A path that no seed takes is not tested by any of them."""
    results = [kind.world.play(kind.world.draw(seed)) for seed in kind.few]
    lacking = missing(kind.world.PROBES, [result.probes for result in results])
    assert lacking == set(), f"python -m tests.simulation.few {name}"
    if kind.world is WorkerWorld:
        moves, ideal = sum(each.moves for each in results), sum(each.ideal for each in results)
        assert 0 < ideal <= moves <= ideal * 1.1


@each_kind
def test_the_seeds_differ_in_what_they_try(kind: Kind) -> None:
    first, last = kind.chunks.start * kind.chunk, kind.chunks.stop * kind.chunk
    drawn = [kind.world.draw(seed) for seed in range(first, last)]
    assert {options.profile for options in drawn} == {"4.0", "4.1", "4.2", "4.3", "4.4"}
    assert {options.codec for options in drawn} == {True, False}


@each_kind
@pytest.mark.timeout(240)  # it computes for seconds, and others may, too
def test_the_same_seed_gives_the_same_trace(kind: Kind) -> None:
    """The cores are functions of their events: the trace has each of them, and each command."""
    options = with_changes(kind.world.draw(kind.seed), dict(kind.short))
    lines: list[str] = []
    again: list[str] = []
    kind.world.play(options, lines.append)
    kind.world.play(options, again.append)
    assert lines == again


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        pytest.param(kind, seed, id=f"{name}-{seed}", marks=_MORE if n else ())
        for name, kind in KINDS.items()
        for n, seed in enumerate(kind.coded)
    ],
)
@pytest.mark.timeout(240)
def test_bytes_change_nothing(kind: Kind, seed: int) -> None:
    """What passes through the codec does what the objects did."""
    options = with_changes(kind.world.draw(seed), dict(kind.short))
    plain = kind.world.play(replace(options, codec=False))
    coded = kind.world.play(replace(options, codec=True))
    assert coded.digest == plain.digest


@each_kind
def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch, kind: Kind) -> None:
    def broken(*_: object) -> None:
        raise AssertionError("nothing is wrong, and yet")

    monkeypatch.setattr(kind.breaks, broken)
    failure = failure_of(kind.world, 7, {"safety_ms": "2000"})
    assert failure is not None
    said = str(failure).splitlines()
    assert said[0] == "AssertionError: nothing is wrong, and yet"
    assert said[1] == "seed 7"
    replay = f"replay: python -m mock_coordinator.sim {kind.world.FLAG} --seed 7 --set "
    assert said[-1].startswith(replay)
    assert said[-1].endswith(" --trace")


@pytest.mark.parametrize("seed", [304, 406, 413])
def test_a_fetch_that_failed_once_holds(seed: int) -> None:
    """Without sessions a topic waited behind its neighbours (406), and an oversized batch for ever
    (413); of a topic that was dropped, the hint of a leader of former times was believed (304)."""
    assert FetchWorld.play(FetchWorld.draw(seed)).records
