"""Random lives of a transactional id: what is told of a transaction is what became of it.

The broker is the bundled one, whose transactions are compared with Kafka's elsewhere. Answers are
lost before and after their effect, requests arrive late, coordinators turn away, transactions time
out, another producer takes the id, the application crashes, the version changes.
"""

from __future__ import annotations

import pytest

from tests.support.transaction_world import World

LEVELS = {"v1": (1,), "v2": (2,), "both": (1, 2)}
LIVES = 60
"""A seed each."""


def check(world: World) -> None:
    """No commit that was told and is not there, none that is there and was told not to be, and all
    of a transaction or nothing."""
    seen = world.visible()
    trace = "\n".join(world.trace[-80:])
    assert len(seen) == len(set(seen)), f"something is there twice\n{trace}"
    there = set(seen)
    offsets = world.offsets()
    may_be: dict[int, set[int]] = {index: {-1} for index in offsets}
    for each in world.outcomes:
        if each.told == "committed":
            assert each.values <= there, f"{each} is told to be committed\n{trace}"
        elif each.told == "not committed":
            assert not each.values & there, f"{each} is told not to be\n{trace}"
        else:
            assert each.values <= there or not each.values & there, f"half of {each}\n{trace}"
        is_sure = each.told == "committed" or (bool(each.values) and each.values <= there)
        is_possible = each.told == "in doubt" and not each.values
        for index in each.offsets:
            if is_sure:
                may_be[index] = {each.number * 10}
            elif is_possible:
                may_be[index].add(each.number * 10)
    for index, offset in offsets.items():
        assert offset in may_be[index], f"offsets of {index}: {offset}, {may_be}\n{trace}"


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_what_is_told_is_what_became_of_it(profile: str, levels: str) -> None:
    told: set[str] = set()
    for seed in range(LIVES):
        world = World(seed, profile=profile, levels=LEVELS[levels])
        try:
            check(world.run())
        except AssertionError as err:
            raise AssertionError(f"seed {seed}: {err}") from err
        told |= {each.told for each in world.outcomes}
    assert told == {"committed", "not committed", "in doubt"}, "these lives are too calm"


@pytest.mark.parametrize("levels", LEVELS)
def test_a_calm_life_commits_everything(levels: str) -> None:
    world = World(1, levels=LEVELS[levels], calm=True).run(30)
    check(world)
    assert {each.told for each in world.outcomes} == {"committed"}
