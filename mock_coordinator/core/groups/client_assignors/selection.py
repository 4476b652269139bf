"""Selects the assignor of the next target, and the member that runs it. Pure.

An assignor can be used if every member offers it. Among those the members vote, each for the first
one in its own list. The member that runs it must be able to read the metadata of all members, in
the versions that they use, and to write theirs (KIP-848, Metadata Version Handling).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mock_coordinator.core.groups.records.assignor_values import ClientAssignor

__all__ = ["Choice", "Offer", "candidates", "choose"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What one member offers. ``can_compute`` is False for a member that is away and for one that
    speaks the classic protocol: their metadata counts, but they cannot be asked."""

    assignors: tuple[ClientAssignor, ...]
    can_compute: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """The assignor and the member that runs it."""

    assignor: str
    member_id: str


def candidates(offers: Mapping[str, Offer], eldest: str | None = None) -> list[str]:
    """The assignors that all members offer, the preferred one first: by votes, then by the sum of
    their places in the members' lists, then by name. With an ``eldest`` member its list decides
    between those with the same number of votes."""
    if not offers or not all(offer.assignors for offer in offers.values()):
        return []
    lists = [[each.name for each in offer.assignors] for offer in offers.values()]
    common = set(lists[0])
    for names in lists[1:]:
        common.intersection_update(names)
        if not common:
            return []
    votes = dict.fromkeys(sorted(common), 0)
    places = dict.fromkeys(votes, 0)
    for names in lists:
        shared = [name for name in names if name in common]
        votes[shared[0]] += 1
        for place, name in enumerate(shared):
            places[name] += place
    if eldest is not None and eldest in offers:
        order = [each.name for each in offers[eldest].assignors]
        return sorted(votes, key=lambda name: (-votes[name], order.index(name)))
    return sorted(votes, key=lambda name: (-votes[name], places[name], name))


def choose(
    offers: Mapping[str, Offer],
    *,
    excluded: Collection[str] = (),
    last: str | None = None,
    eldest: str | None = None,
) -> Choice | None:
    """The next to compute; ``None`` when the broker has to.

    ``excluded`` are members that failed at this group epoch; they come last. ``last`` is the member
    that computed before, which is kept if it can be: among those who understand as much, or, in a
    group with an ``eldest`` member, even if another one understands more versions.
    """
    for name in candidates(offers, eldest):
        ranges = {
            member_id: next(each for each in offer.assignors if each.name == name)
            for member_id, offer in offers.items()
        }
        used = [each.metadata_version for each in ranges.values()]
        lowest, highest = min(used), max(used)
        eligible = [
            member_id
            for member_id, each in ranges.items()
            if offers[member_id].can_compute
            and each.minimum_version <= lowest
            and each.maximum_version >= highest
        ]
        if not eligible:
            continue
        # when all have failed they take turns
        fresh = [member_id for member_id in eligible if member_id not in excluded]
        fresh = fresh or [member_id for member_id in eligible if member_id != last] or eligible
        bottom = min(each.minimum_version for each in ranges.values())
        top = max(each.maximum_version for each in ranges.values())

        def rank(
            member_id: str,
            ranges: Mapping[str, ClientAssignor] = ranges,
            bottom: int = bottom,
            top: int = top,
        ) -> tuple[bool, bool, bool, str]:
            each = ranges[member_id]
            covers_all = each.minimum_version <= bottom and each.maximum_version >= top
            other = member_id != last
            return (eldest is not None and other, not covers_all, other, member_id)

        return Choice(name, min(fresh, key=rank))
    return None
