"""Each event that a consumer tells has its line."""

from __future__ import annotations

from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.history.core import FIELDS, KINDS, HistoryEvent, line_of, parse_line
from kip848_client.history.recording import Who, event_of
from kip848_client.observe.core import watching
from kip848_client.observe.core.watching import MembershipEvent

WHO: Who = {
    "role": "consumer",
    "group_id": "g",
    "member_id": "m",
    "instance_id": None,
    "client_id": "c",
}
TPS = (TopicPartition("b", 1), TopicPartition("a", 2))
SORTED = tuple(sorted(TPS))
TOLD: tuple[tuple[MembershipEvent, str, dict[str, object]], ...] = (
    (watching.ApplicationStalled(9, 3, 150, 20), "stalled", {"duration_ms": 150}),
    (
        watching.CommitFenced(9, 3, TPS, "UNKNOWN_MEMBER_ID"),
        "commit_refused",
        {"partitions": SORTED, "cause": "UNKNOWN_MEMBER_ID"},
    ),
    (watching.CoordinatorBack(9, 3, 70), "coordinator_back", {"duration_ms": 70}),
    (watching.CoordinatorLost(9, 3, "moved"), "coordinator_lost", {"cause": "moved"}),
    (watching.CoordinatorUnreachable(9, 3, 70), "coordinator_silent", {"duration_ms": 70}),
    (watching.EventLoopBlocked(9, 3, 80, None), "blocked", {"duration_ms": 80}),
    (watching.EventsMissed(9, 3, 4), "missed", {"count": 4}),
    (watching.HeartbeatAnswered(9, 3, 12), "heartbeat", {"duration_ms": 12}),
    (
        watching.HeartbeatLost(9, 3, 12, "timed_out"),
        "heartbeat_lost",
        {"duration_ms": 12, "cause": "timed_out"},
    ),
    (
        watching.HeartbeatRefused(
            time_ms=9, member_epoch=3, latency_ms=12, cause="NOT_COORDINATOR"
        ),
        "heartbeat_refused",
        {"duration_ms": 12, "cause": "NOT_COORDINATOR"},
    ),
    (watching.MemberEpochChanged(9, 3, 2), "epoch", {}),
    (watching.MemberFailed(9, 3, Kip848Error("over")), "failed", {"cause": "over"}),
    (watching.MemberFenced(9, 3, "F"), "fenced", {"cause": "F"}),
    (watching.PartitionsAssigned(9, 3, TPS), "assigned", {"partitions": SORTED}),
    (
        watching.PartitionsLost(9, 3, TPS, "fenced"),
        "lost",
        {"partitions": SORTED, "cause": "fenced"},
    ),
    (watching.PartitionsRevoked(9, 3, TPS), "revoked", {"partitions": SORTED}),
    (
        watching.StaleCommit(9, 3, TPS),
        "commit_refused",
        {"partitions": SORTED, "cause": "STALE_MEMBER_EPOCH"},
    ),
    (
        watching.StateChanged(9, 3, MemberState.JOINING, MemberState.STABLE, "so"),
        "state",
        {"old_state": "JOINING", "state": "STABLE", "cause": "so"},
    ),
)


def test_every_event_has_its_kind_and_fields() -> None:
    named = [getattr(watching, name) for name in watching.__all__]
    events = {each for each in named if isinstance(each, type) and each.__base__ is MembershipEvent}
    assert {type(told) for told, _, _ in TOLD} == events, "a new event has no line"
    kinds = {kind.name: kind for kind in KINDS}
    plain = HistoryEvent(**WHO, kind="", time_ms=9, member_epoch=3)
    for told, kind, fields in TOLD:
        found = event_of(told, WHO)
        said = {f.name: getattr(found, f.name) for f in FIELDS}
        expected = {f.name: getattr(plain, f.name) for f in FIELDS} | fields | {"kind": kind}
        assert said == expected
        used = {name for name in fields if fields[name]}
        assert used <= set(kinds[kind].fields), f"{kind}: the schema does not say so"
        assert parse_line(line_of(found)) == found
