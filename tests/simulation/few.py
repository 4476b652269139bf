"""Chooses a few seeds that take each rare path twice: ``python -m tests.simulation.few WORLD``.

Which seed takes which path changes with every change of a core or of a world. Where the test of the
few seeds says that a path is missing, this says which seeds to write there instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from mock_coordinator.sim import WORLDS
from mock_coordinator.sim.world import World

__all__ = ["few", "missing"]

_SEEDS: Final = 200


class Played(NamedTuple):
    """A seed, what it took, and the paths that it reached."""

    seed: int
    seconds: float
    reached: frozenset[str]


def missing(wanted: Iterable[str], probes: Iterable[Mapping[str, int]]) -> set[str]:
    """The paths that none of some worlds took."""
    return set(wanted) - {name for each in probes for name, count in each.items() if count}


def few(wanted: Iterable[str], played: Iterable[Played]) -> list[int]:
    """Seeds that together reach everything twice, by how much they add for their time: so one seed
    may change its ways without harm."""
    rest, chosen = list(played), list[int]()
    for _ in range(2):
        left = set(wanted)
        while left:
            best = max(rest, key=lambda each: len(each.reached & left) / each.seconds)
            if not best.reached & left:
                raise SystemExit(f"too few seeds reach {sorted(left)}")
            rest.remove(best)
            left -= best.reached
            chosen.append(best.seed)
    return chosen


def _play(seed: int, world: type[World[Any, Any]]) -> Played:
    began = time.perf_counter()
    probes = world.play(world.draw(seed)).probes
    seconds = time.perf_counter() - began
    return Played(seed, seconds, frozenset(name for name, count in probes.items() if count))


def main(arguments: list[str]) -> None:
    """Print the seeds."""
    world = WORLDS[arguments[0]]
    played = [_play(seed, world) for seed in range(_SEEDS)]
    chosen = few(world.PROBES, played)
    seconds = sum(each.seconds for each in played if each.seed in chosen)
    print(tuple(sorted(chosen)), f"{seconds:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
