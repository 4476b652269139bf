"""Rare paths that the fixed seeds must reach, by name.

A simulation that never meets a fenced member proves nothing about fencing. Each place of interest
says ``probes.reached("name")``; the tests assert that over the fixed seeds every name was reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

__all__ = ["PROBES", "Probes"]

PROBES: Final[Mapping[str, str]] = {
    "extra heartbeat": "a member asked sooner than the interval because its assignment changed",
    "fence": "a member was refused with FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID",
    "fence during reconciliation": "it was in the middle of a reconciliation",
    "revoke interrupted by fence": "its revoked callback was running",
    "lost response": "the coordinator acted on a heartbeat and the member never knew",
    "lost response with epoch bump": "and the member's epoch had moved by it",
    "previous epoch accepted": "the coordinator took a heartbeat of the epoch before",
    "late request": "a heartbeat was processed after a younger one of the same member",
    "duplicate request": "the network delivered a heartbeat twice",
    "session expiry": "a member was silent for its session timeout and was removed",
    "rebalance timeout expiry": "a member did not give partitions up in time and was removed",
    "static leave -2": "a static member left for a while",
    "static -2 return": "and its next incarnation took its partitions over",
    "UNRELEASED_INSTANCE_ID": "an instance id was still held when a member wanted to join with it",
    "UNRELEASED_INSTANCE_ID retry": "the member got in after all by asking again",
    "FENCED_INSTANCE_ID": "another member had taken over the instance id",
    "GROUP_ID_NOT_FOUND": "the coordinator did not know the group of a member",
    "coordinator crash": "the coordinator died",
    "crash during reconciliation": "while a group was not stable",
    "crash loses records": "and with it records that were not acknowledged",
    "coordinator moved": "the coordinator answered NOT_COORDINATOR",
    "coordinator loading": "the coordinator answered COORDINATOR_LOAD_IN_PROGRESS",
    "coordinator relocated": "another broker of the cluster took over from one that runs",
    "relocated during reconciliation": "while a group was not stable",
    "former coordinator asked": "a broker that coordinates no more was asked, and said so",
    "new coordinator asked too early": "the broker that took over was asked while it loaded",
    "poll interval exceeded": "a member left because its application did not poll",
    "callback failure": "a rebalance callback raised",
    "callback outlasts membership": "a callback ended after the member was fenced or had left",
    "partial acknowledgement": "a member acknowledged what it could name and took the rest later",
    "topic re-creation": "a member held a topic that was deleted and made again",
    "topic deletion": "a member gave up partitions of a topic that is gone",
    "topic growth": "a topic got more partitions",
    "regex subscription": "a member subscribed by a pattern",
    "orphaned partition": "a partition was in the target of a member that had left its topic",
    "stale commit": "a commit was refused with STALE_MEMBER_EPOCH",
    "commit before revocation": "a revocation waited for a commit that stored something",
    "zombie": "two members believed to own a partition, one of them without a lease",
    "paused member removed": "a member woke up after the group had given it up",
    "resubscribed while leaving": "a subscription came while the old membership was being left",
    "leave lost": "a leave was never answered",
}
"""Every probe, and what having reached it means."""


class Probes:
    """Counts how often each place was reached in a run. ``known`` are the places there are."""

    def __init__(self, known: Mapping[str, str] = PROBES) -> None:
        self._known = known
        self.counts: Counter[str] = Counter()

    def reached(self, name: str) -> None:
        """This place was reached. Raises ``KeyError`` for a name that the table does not have."""
        if name not in self._known:
            raise KeyError(name)
        self.counts[name] += 1
