"""The fixed seeds, in chunks, and whether a world holds.

Every run plays the first 5 (``CHUNKS``), ``--everything`` 115 more (``MORE_CHUNKS``), and
``python -m tests.long`` thousands.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.sim import Failure, Options, draw_options, simulate

__all__ = ["CHUNKS", "MORE_CHUNKS", "failure_of", "first_failure", "seeds_of_chunk"]

SEEDS: Final = 5
MORE_SEEDS: Final = 115
CHUNK: Final = 5
CHUNKS: Final = range(SEEDS // CHUNK)
MORE_CHUNKS: Final = range(len(CHUNKS), (SEEDS + MORE_SEEDS) // CHUNK)


def seeds_of_chunk(chunk: int) -> range:
    """Those that one test plays."""
    return range(chunk * CHUNK, (chunk + 1) * CHUNK)


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
