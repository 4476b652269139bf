"""The fixed seeds, in chunks, each played once in a test process."""

from __future__ import annotations

from functools import cache
from typing import Final

from mock_coordinator.sim import Failure, Options, Result, draw_options, simulate

__all__ = ["CHUNKS", "all_results", "first_failure", "play_chunk"]

SEEDS: Final = 200
CHUNK: Final = 10
CHUNKS: Final = range(SEEDS // CHUNK)


@cache
def play_chunk(chunk: int) -> tuple[Result, ...]:
    """The results of a chunk's seeds. Raises ``Failure`` at the first that does not hold."""
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    return tuple(simulate(draw_options(seed)) for seed in seeds)


def all_results() -> list[Result]:
    """The results of all fixed seeds."""
    return [result for chunk in CHUNKS for result in play_chunk(chunk)]


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
