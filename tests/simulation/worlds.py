"""The fixed seeds, in chunks, each played once in a test run, whichever process plays it.

Every run plays the first 10 (``CHUNKS``), ``--everything`` 390 more (``MORE_CHUNKS``). The first
200 together take every path that is known to be rare (``VARIED_CHUNKS``).
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Final

from mock_coordinator.sim import Failure, Options, Result, draw_options, simulate

__all__ = ["CHUNKS", "MORE_CHUNKS", "PlayedWorlds", "failure_of", "first_failure"]

SEEDS: Final = 10
VARIED_SEEDS: Final = 200
MORE_SEEDS: Final = 390
CHUNK: Final = 10
CHUNKS: Final = range(SEEDS // CHUNK)
VARIED_CHUNKS: Final = range(VARIED_SEEDS // CHUNK)
MORE_CHUNKS: Final = range(len(CHUNKS), (SEEDS + MORE_SEEDS) // CHUNK)


class PlayedWorlds:
    """The results of the fixed seeds, in a folder that all processes of a test run see."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)

    def chunk(self, number: int) -> tuple[Result, ...]:
        """The results of a chunk's seeds. Raises ``Failure`` at the first that does not hold."""
        path = self._folder / f"{number}.pickle"
        if path.exists():
            results: tuple[Result, ...] = pickle.loads(path.read_bytes())
            return results
        seeds = range(number * CHUNK, (number + 1) * CHUNK)
        results = tuple(simulate(draw_options(seed)) for seed in seeds)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(results))
        part.replace(path)
        return results

    def varied(self) -> list[Result]:
        """The results of ``VARIED_CHUNKS``."""
        return [result for number in VARIED_CHUNKS for result in self.chunk(number)]


def first_failure(seeds: range) -> Failure | None:
    """The first failure of these seeds, ``None`` when all hold."""
    for seed in seeds:
        failure = failure_of(draw_options(seed))
        if failure is not None:
            return failure
    return None


def failure_of(options: Options) -> Failure | None:
    """How this world fails, ``None`` when it holds."""
    try:
        simulate(options)
    except Failure as failure:
        return failure
    return None
