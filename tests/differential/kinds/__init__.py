"""The kinds of sequences, and which seed is of which kind.

Seeds go round the kinds in proportion to their shares, always the same way, so that a few
neighbouring seeds already have all kinds among them.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from mock_coordinator.core.release_line import ReleaseLine
from tests.differential._plan import Kind
from tests.differential.kinds import (
    acl,
    admin,
    classic,
    consumer,
    log,
    migration,
    offsets,
    sessions,
    timers,
    transactions,
)

__all__ = ["KINDS", "exists", "kind_named", "kind_of"]

KINDS: Final[tuple[Kind, ...]] = (
    consumer.KIND,
    classic.KIND,
    offsets.KIND,
    transactions.KIND,
    *migration.KINDS,
    timers.KIND,
    admin.KIND,
    log.KIND,
    consumer.INTERVAL,
    acl.KIND,
    sessions.KIND,
)


def kind_named(name: str) -> Kind:
    """Raises ``KeyError`` for a name that no kind has."""
    return {each.name: each for each in KINDS}[name]


def kind_of(seed: int, version: str) -> Kind:
    """The kind of a seed on a release. Where a release lacks what a kind is about, its seeds are
    of the first kind."""
    cycle = _cycle()
    kind = cycle[seed % len(cycle)]
    return kind if exists(kind, version) else KINDS[0]


def exists(kind: Kind, version: str) -> bool:
    """Whether a release has what a kind is about."""
    return ReleaseLine.of(version) >= kind.since


@cache
def _cycle() -> tuple[Kind, ...]:
    """Each kind once, then each as often as its share, spread evenly: the one that is furthest
    behind comes next."""
    total = sum(kind.share for kind in KINDS)
    given = dict.fromkeys(range(len(KINDS)), 1)
    found = list(KINDS)
    for position in range(len(KINDS) + 1, total + 1):
        behind = max(
            given, key=lambda n: (KINDS[n].share * position / total - given[n], KINDS[n].share)
        )
        given[behind] += 1
        found.append(KINDS[behind])
    return tuple(found)
