"""Chooses a few seeds that take each rare path twice: ``python -m tests.simulation.few WORLD``.

Which seed takes which path changes with every change of a core or of a world. Where the test of the
few seeds says that a path is missing, this says which seeds to write there instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from mock_coordinator.sim import PROBES, draw_options, simulate
from mock_coordinator.sim.exactly_once.options import draw_process_options
from mock_coordinator.sim.exactly_once.probes import PROCESS_PROBES
from mock_coordinator.sim.exactly_once.world import simulate_exactly_once
from mock_coordinator.sim.fetching.options import draw_fetch_options
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.fetching.world import simulate_fetching
from mock_coordinator.sim.producing.options import draw_produce_options
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES
from mock_coordinator.sim.producing.world import simulate_producing
from mock_coordinator.sim.workers.options import draw_worker_options
from mock_coordinator.sim.workers.probes import WORKER_PROBES
from mock_coordinator.sim.workers.world import simulate_workers

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


def _group(seed: int) -> Mapping[str, int]:
    return simulate(draw_options(seed)).probes


def _fetch(seed: int) -> Mapping[str, int]:
    return simulate_fetching(draw_fetch_options(seed)).probes


def _produce(seed: int) -> Mapping[str, int]:
    return simulate_producing(draw_produce_options(seed)).probes


def _process(seed: int) -> Mapping[str, int]:
    return simulate_exactly_once(draw_process_options(seed)).probes


def _work(seed: int) -> Mapping[str, int]:
    return simulate_workers(draw_worker_options(seed)).probes


def _play(seed: int, world: Callable[[int], Mapping[str, int]]) -> Played:
    began = time.perf_counter()
    probes = world(seed)
    seconds = time.perf_counter() - began
    return Played(seed, seconds, frozenset(name for name, count in probes.items() if count))


def main(arguments: list[str]) -> None:
    """Print the seeds."""
    worlds = {
        "groups": (_group, PROBES),
        "fetching": (_fetch, FETCH_PROBES),
        "producing": (_produce, PRODUCE_PROBES),
        "exactly-once": (_process, PROCESS_PROBES),
        "workers": (_work, WORKER_PROBES),
    }
    world, wanted = worlds[arguments[0]]
    played = [_play(seed, world) for seed in range(_SEEDS)]
    chosen = few(wanted, played)
    seconds = sum(each.seconds for each in played if each.seed in chosen)
    print(tuple(sorted(chosen)), f"{seconds:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
