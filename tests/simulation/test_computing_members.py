"""Groups whose members compute: large ones, failing ones, and ones whose messages get lost."""

from __future__ import annotations

import pytest

from tests.simulation.computing_group import ComputingGroup
from tests.simulation.upgrading import moves, upgrade

MEMBERS = 100
PARTITIONS = 1_000
UPGRADED = 6
"""So many of them; all of them take over a minute (``python -m tests.simulation.upgrading``)."""


def test_a_hundred_members_share_a_thousand_partitions() -> None:
    group = ComputingGroup(PARTITIONS)
    members = group.join(MEMBERS)
    group.settle()
    assert {len(each.held) for each in members} == {PARTITIONS // MEMBERS}

    before = group.owners()
    group.join(1, "new")
    group.settle()
    ideal = PARTITIONS // (MEMBERS + 1)
    assert moves(group, before) <= ideal * 1.1

    # whoever computes dies of it; another one takes over, when the session has run out
    for each in group.alive:
        each.dies_when_computing = True
    before = group.owners()
    leaving = group.alive[50]
    leaving.leave()
    dead = group.members[:0]
    for _ in range(30):
        group.clock.advance(1_000)
        dead = [each for each in group.members if not each.alive]
        if dead:
            break
    assert len(dead) == 1
    for each in group.alive:
        each.dies_when_computing = False
    group.settle()
    gone = {leaving.member_id, dead[0].member_id}
    ideal = sum(who in gone for who in before.values())
    assert moves(group, before) <= ideal * 1.1


def test_who_is_slow_is_passed_over_and_loses_nothing() -> None:
    group = ComputingGroup(40)
    group.join(4)
    group.settle()
    last = group.last_asked  # who is asked again
    assert last is not None
    computed = last.computed
    last.slow_ms = 60_000
    before = group.owners()
    group.join(1, "new")
    took_ms = group.settle()
    assert took_ms >= 20_000  # the rebalance timeout of who was asked first
    assert last.alive
    assert last.computed == computed + 1
    assert group.last_asked is not last
    assert moves(group, before) <= 40 / 5 * 1.1


def test_where_all_fail_it_is_told_once_and_the_group_rests() -> None:
    group = ComputingGroup(4)
    group.join(2)
    group.settle()
    for each in group.members:
        each.fails = True
    group.join(1, "new")[0].fails = True
    group.clock.advance(60_000)
    computed = [each.computed for each in group.members]
    assert [each.told[-1].error != 0 for each in group.members] == [True, True, True]
    group.clock.advance(60_000)
    assert [each.computed for each in group.members] == computed
    for each in group.members:
        each.fails = False
    group.join(1, "next")
    group.settle()


def test_versions_are_raised_one_member_after_the_other() -> None:
    group = ComputingGroup(60)
    old = group.join(6, "old", (0, 1))
    group.settle()
    for i, member in enumerate(old):
        before = group.owners()
        member.leave()
        group.settle()
        freed = sum(who == member.member_id for who in before.values())
        assert moves(group, before) <= freed * 1.1
        group.join(1, f"new{i}-", (0, 2))
        group.settle()
    assert all(each.member_id.startswith("new") for each in group.alive)


@pytest.mark.parametrize("seed", range(10))
def test_messages_get_lost(seed: int) -> None:
    group = ComputingGroup(24, seed=seed, loss=15)
    group.join(4)
    group.clock.advance(20_000)
    for i in range(3):
        group.join(1, f"x{i}-")
        group.clock.advance(group.rng.randint(0, 8_000))
        group.rng.choice(group.alive).die()
        group.clock.advance(group.rng.randint(0, 8_000))
    group.loss = 0
    group.settle()


@pytest.mark.everything("a hundred members share a thousand partitions again and again")
def test_a_hundred_members_are_upgraded_one_by_one() -> None:
    """Among them are one whose assignor takes too long and one that dies when it computes."""
    result = upgrade(MEMBERS, PARTITIONS, UPGRADED)
    print(f"{UPGRADED} of {MEMBERS} members upgraded: {result}")
    assert (result.slow, result.crashed) == (1, 1)
