"""Plays worlds with a planted bug until a checker finds it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from mock_coordinator.sim import Failure
from mock_coordinator.sim.swarm import with_changes
from mock_coordinator.sim.world import World
from tests.support.planting import Plant

__all__ = ["Bug", "failure_of", "found", "heads"]


class Bug(NamedTuple):
    """What is wrong, what the checkers say of it, how to plant it, and the options of worlds that
    show it."""

    name: str
    said: str
    plants: tuple[Plant, ...]
    changes: dict[str, str] = {}  # noqa: RUF012 - nothing changes it


def failure_of(
    world: type[World[Any, Any]], seed: int, changes: Mapping[str, str] = {}
) -> Failure | None:
    """How the world of a seed fails, ``None`` when it holds."""
    try:
        world.play(with_changes(world.draw(seed), dict(changes)))
    except Failure as failure:
        return failure
    return None


def heads(
    world: type[World[Any, Any]], seeds: Iterable[int], changes: Mapping[str, str] = {}
) -> Iterator[str]:
    """The first line of each failure."""
    for seed in seeds:
        failure = failure_of(world, seed, changes)
        if failure is not None:
            yield str(failure).splitlines()[0]


def found(
    world: type[World[Any, Any]],
    seeds: Iterable[int],
    said: str,
    changes: Mapping[str, str] = {},
    *,
    failures: int | None = 1,
) -> list[str]:
    """What worlds say that fail, up to the one that says ``said``, or ``failures`` of them. Which
    checker comes first may depend on what else happens in a world."""
    heard: list[str] = []
    for head in islice(heads(world, seeds, changes), failures):
        heard.append(head)
        if said in head:
            break
    return heard
