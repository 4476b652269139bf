"""Histories of groups that nobody lived: few members in little time, so that all meets."""

from __future__ import annotations

from random import Random
from typing import Final

from kip848_client.core.types import TopicPartition
from kip848_client.history.core import HistoryEvent

__all__ = ["KINDS_OF_MEMBERS", "any_history", "event"]

PARTITIONS: Final = tuple(TopicPartition(topic, n) for topic in "ab" for n in (0, 1))
KINDS_OF_MEMBERS: Final = (
    *("assigned", "assigned", "revoked", "lost", "epoch", "heartbeat", "heartbeat"),
    *("heartbeat_lost", "heartbeat_refused", "commit_refused", "started", "of tomorrow"),
)
_KINDS_OF_COORDINATORS: Final = (
    *("assigned", "assigned", "revoked", "lost", "heartbeat", "heartbeat", "committed"),
    *("commit_refused", "group_epoch", "target", "fenced"),
)


def event(kind: str, time_ms: int, member_id: str | None = "m", **said: object) -> HistoryEvent:
    """One, of a consumer unless something else is said."""
    given: dict[str, object] = {
        "role": "consumer",
        "writer": f"w-{member_id}",
        "host": "h",
        "group_id": "g",
        "seq": time_ms,
    }
    fields: dict[str, object] = given | {"kind": kind, "time_ms": time_ms, "member_id": member_id}
    return HistoryEvent(**(fields | said))  # type: ignore[arg-type]  # tests say what they want


def any_history(random: Random, group_id: str, events: int) -> list[HistoryEvent]:
    """Some events, some of them twice, in any order. Hosts are the group's own."""
    found: list[HistoryEvent] = []
    silent = random.choice((None, "m0"))  # it has no events of its own
    watched = random.random() < 0.7
    for seq in range(events):
        member_id = random.choice(("m0", "m1", "m2"))
        by_coordinator = member_id == silent or (watched and random.random() < 0.5)
        role = "coordinator" if by_coordinator else random.choice(("consumer", "worker"))
        kinds = _KINDS_OF_COORDINATORS if by_coordinator else KINDS_OF_MEMBERS
        kind = random.choice(kinds)
        has_partitions = kind in ("assigned", "revoked", "lost", "committed", "commit_refused")
        chosen = random.sample(PARTITIONS, random.randint(1, 3)) if has_partitions else ()
        of_group = kind in ("group_epoch", "target")
        found.append(
            HistoryEvent(
                writer=f"{group_id}/{role}/{member_id}",
                seq=seq,
                host=f"{group_id}/{'c' if by_coordinator else random.choice('ab')}",
                role=role,
                time_ms=random.randint(0, 60),
                kind=kind,
                group_id=group_id,
                member_id=None if of_group else member_id,
                member_epoch=random.choice((None, 0, 1, 2, 3)),
                group_epoch=random.randint(0, 3) if of_group else None,
                partitions=tuple(sorted(chosen)),
                cause=random.choice((None, "STALE_MEMBER_EPOCH")),
                duration_ms=random.choice((None, 0, 1, 5, 20)),
            )
        )
    found += random.sample(found, min(len(found), 3))
    random.shuffle(found)
    return found
