"""Members of a group are replaced one by one by such with a newer assignor, in virtual time.

``python -m tests.simulation.upgrading --members 100 --partitions 1000 --upgraded 100``
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from kip848_client.core.types import MemberId, TopicPartition
from tests.simulation.computing_group import ComputingGroup

__all__ = ["Upgrade", "moves", "upgrade"]

_SLOW_MS = 60_000
"""Longer than the group waits for an assignor."""
_EVERY = 10
"""So often somebody's assignor takes too long, and so often somebody dies when it computes."""


@dataclass
class Upgrade:
    """What came of it. ``ideal`` is what had to move: what those who went had had, and what those
    who came should have."""

    ideal: int = 0
    real: int = 0
    slow: int = 0
    crashed: int = 0

    def count(self, moved: int, ideal: int) -> None:
        """A step is over; at most a tenth more may have moved than had to."""
        assert moved <= ideal * 1.1, f"{moved} partitions moved, {ideal} had to"
        self.real += moved
        self.ideal += ideal


def moves(group: ComputingGroup, before: dict[TopicPartition, MemberId]) -> int:
    """How many partitions are with somebody else than before."""
    return sum(before[tp] != who for tp, who in group.owners().items())


def upgrade(members: int, partitions: int, upgraded: int) -> Upgrade:
    """``upgraded`` of ``members`` leave, one after the other, and another one comes for each. Now
    and then the one that computes for the group takes too long, or dies of it."""
    result = Upgrade()
    group = ComputingGroup(partitions)
    old = group.join(members, "old", (0, 1))
    group.settle()
    for i, member in enumerate(old[:upgraded]):
        before = group.owners()
        computes = group.last_asked  # who is asked again
        assert computes is not None
        if computes is not member and i % _EVERY == _EVERY // 5:
            result.slow, computes.slow_ms = result.slow + 1, _SLOW_MS
        if computes is not member and i % _EVERY == _EVERY // 3:
            result.crashed, computes.dies_when_computing = result.crashed + 1, True
        if member.alive:
            member.leave()
        group.settle()
        computes.slow_ms = 10
        computes.dies_when_computing = False
        alive = {each.member_id for each in group.alive}
        result.count(moves(group, before), sum(who not in alive for who in before.values()))

        before = group.owners()
        joining = members - len(alive)
        group.join(joining, f"new{i}-", (0, 2))
        group.settle()
        result.count(moves(group, before), joining * partitions // members)
        assert set(group.owners()) == {("t", number) for number in range(partitions)}
    return result


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("members", 100), ("partitions", 1000), ("upgraded", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    print(upgrade(**vars(parser.parse_args())))


if __name__ == "__main__":
    _main()
