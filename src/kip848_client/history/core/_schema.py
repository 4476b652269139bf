"""The fields of events and the columns of tables, defined in one place.

``docs/reference/history.md`` is printed from here; readers, writers and Spark's schema follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

__all__ = [
    "COORDINATOR",
    "FIELDS",
    "KINDS",
    "SCHEMA",
    "TABLES",
    "Column",
    "Field",
    "Kind",
    "Role",
]

SCHEMA: Final = 1
"""The number of this schema. A field more does not change it; another meaning does."""


class Role(Enum):
    """The kind of writer of an event."""

    CONSUMER = "consumer"
    """A consumer, of its own membership."""
    WORKER = "worker"
    """A Connect worker, of its own membership."""
    COORDINATOR = "coordinator"
    """A group coordinator, of all members of its groups."""


COORDINATOR: Final = Role.COORDINATOR.value
_ALL: Final = "all"
_MEMBERS: Final = "members"
_BOTH: Final = "members and the coordinator"
_COORDINATOR: Final = "the coordinator"


class Field(NamedTuple):
    """One field of an event. ``type`` is ``string``, ``long`` or ``partitions``."""

    name: str
    type: str
    unit: str
    writers: str
    meaning: str
    required: bool = False


class Kind(NamedTuple):
    """One kind of event."""

    name: str
    writers: str
    meaning: str
    fields: tuple[str, ...] = ()
    """Its fields in addition to those of all kinds."""


class Column(NamedTuple):
    """One column of a table. ``type`` is ``string`` or ``long``."""

    name: str
    type: str
    unit: str
    meaning: str


FIELDS: Final = (
    Field("schema", "long", "", _ALL, f"The number of the schema: {SCHEMA}.", required=True),
    Field(
        "writer",
        "string",
        "",
        _ALL,
        "Who wrote the event: random, new for each recording. With `seq` it names the event: a "
        "line that is there twice counts once.",
        required=True,
    ),
    Field(
        "seq", "long", "", _ALL, "0, 1, 2 ...: a number that lacks is an event that is lost.", True
    ),
    Field("host", "string", "", _ALL, "The host of the writer: whose clock `time_ms` is of.", True),
    Field("role", "string", "", _ALL, "`consumer`, `worker` or `coordinator`.", required=True),
    Field("time_ms", "long", "ms since 1970", _ALL, "When, by the clock of `host`.", required=True),
    Field("kind", "string", "", _ALL, "What happened: see below.", required=True),
    Field("group_id", "string", "", _ALL, "The group.", required=True),
    Field("member_id", "string", "", _ALL, "The member; none in what is about the whole group."),
    Field("instance_id", "string", "", _ALL, "`group.instance.id` of a static member."),
    Field("client_id", "string", "", _ALL, "`client.id` of the member."),
    Field("member_epoch", "long", "", _ALL, "The member epoch after what happened."),
    Field("group_epoch", "long", "", _COORDINATOR, "The group epoch; of a target its epoch."),
    Field("old_state", "string", "", _MEMBERS, "The state before."),
    Field("state", "string", "", _MEMBERS, "The state after."),
    Field(
        "partitions",
        "partitions",
        "",
        _ALL,
        'Which: `[{"topic": "orders", "partitions": [0, 1]}]`, sorted. Of a worker the connectors '
        "are the topics, their tasks the partitions, and -1 is the connector itself.",
    ),
    Field("cause", "string", "", _ALL, "Why: the name of an error, or a few words."),
    Field("duration_ms", "long", "ms", _ALL, "How long it took or has lasted: see the kinds."),
    Field("count", "long", "", _ALL, "How many: see the kinds."),
)
"""The fields of an event, in the order in which they are written."""

KINDS: Final = (
    Kind("started", _BOTH, "The recording begins."),
    Kind("stopped", _BOTH, "The recording ends in good order: of a member, after it has left."),
    Kind(
        "state",
        _MEMBERS,
        "The member went from one state to another.",
        ("old_state", "state", "cause"),
    ),
    Kind("epoch", _MEMBERS, "The member has another epoch; 0: none any more.", ("member_epoch",)),
    Kind(
        "assigned",
        _BOTH,
        "The member owns these from now on: its listener is about to be called. Of the "
        "coordinator: an answer gives them to the member.",
        ("partitions",),
    ),
    Kind(
        "revoked",
        _BOTH,
        "The member works on these no more, and gives them up. Of the coordinator: a heartbeat "
        "does not report them any more, or the member has left.",
        ("partitions",),
    ),
    Kind(
        "lost",
        _BOTH,
        "The member has these no more, and others may have them already.",
        ("partitions", "cause"),
    ),
    Kind("joined", _COORDINATOR, "The member is new in the group, or is back in it."),
    Kind("left", _COORDINATOR, "The member has said that it leaves.", ("cause",)),
    Kind(
        "fenced",
        _BOTH,
        "The coordinator does not accept the member any more. Of the coordinator: it put the "
        "member out, because its session or its time to give partitions up was over.",
        ("cause",),
    ),
    Kind("failed", _MEMBERS, "The membership is over.", ("cause",)),
    Kind(
        "heartbeat",
        _BOTH,
        "A heartbeat was answered, with this epoch. Of members, `duration_ms` is from question to "
        "answer.",
        ("member_epoch", "duration_ms"),
    ),
    Kind("heartbeat_refused", _BOTH, "It was answered with an error.", ("cause", "duration_ms")),
    Kind("heartbeat_lost", _MEMBERS, "There was no answer.", ("cause", "duration_ms")),
    Kind(
        "committed",
        _COORDINATOR,
        "Offsets of these partitions were stored, as the member asked with this epoch.",
        ("partitions",),
    ),
    Kind(
        "commit_refused",
        _BOTH,
        "Offsets of these partitions were not stored, because of who asked: its epoch is stale, or "
        "it is not in the group.",
        ("partitions", "cause"),
    ),
    Kind("group_epoch", _COORDINATOR, "The group has a new epoch.", ("group_epoch",)),
    Kind(
        "target",
        _COORDINATOR,
        "There is a new target assignment, for `count` members.",
        ("group_epoch", "count"),
    ),
    Kind("coordinator_lost", _MEMBERS, "The coordinator moved, or does not answer.", ("cause",)),
    Kind("coordinator_silent", _MEMBERS, "It has not answered for so long.", ("duration_ms",)),
    Kind("coordinator_back", _MEMBERS, "It answers again, after so long.", ("duration_ms",)),
    Kind("stalled", _MEMBERS, "The application has not asked for records.", ("duration_ms",)),
    Kind("blocked", _MEMBERS, "The event loop did not run for so long.", ("duration_ms",)),
    Kind("missed", _MEMBERS, "The number of events that could not be recorded.", ("count",)),
)
"""All kinds. A reader takes others, too, for signs of life."""

_OF_GROUP: Final = Column("group_id", "string", "", "The group.")
_OF_PARTITION: Final = (
    Column("topic", "string", "", "The topic; of workers the connector."),
    Column("partition", "long", "", "The partition; of workers the task, -1 the connector itself."),
)
_OF_MEMBER: Final = Column("member_id", "string", "", "The member.")

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "partition_downtime": (
        _OF_GROUP,
        *_OF_PARTITION,
        Column("first_owned_ms", "long", "ms since 1970", "When a member owned it first."),
        Column("last_owned_ms", "long", "ms since 1970", "Until when a member owned it last."),
        Column("owners", "long", "", "How many members owned it."),
        Column("downtime_ms", "long", "ms", "How long no member owned it, between these two."),
        Column("gaps", "long", "", "In how many pieces."),
        Column("longest_gap_ms", "long", "ms", "The longest of them."),
        Column(
            "overlap_ms", "long", "ms", "How long more than one owned it, once for each too many."
        ),
    ),
    "heartbeat_sla": (
        _OF_GROUP,
        _OF_MEMBER,
        Column("heartbeats", "long", "", "How many were answered without an error."),
        Column("refused", "long", "", "How many were answered with an error."),
        Column("lost", "long", "", "How many were not answered."),
        Column(
            "in_time", "long", "", "How many of the answered ones took no longer than was promised."
        ),
        Column("p50_ms", "long", "ms", "Half of the answered ones took at most so long."),
        Column("p99_ms", "long", "ms", "Of a hundred, 99 took at most so long."),
        Column("max_ms", "long", "ms", "The longest one."),
        Column("longest_silence_ms", "long", "ms", "The longest time between two answered ones."),
    ),
    "rebalance_duration": (
        _OF_GROUP,
        Column("epoch", "long", "", "The epoch that members moved to."),
        Column("began_ms", "long", "ms since 1970", "The first event with this epoch."),
        Column("ended_ms", "long", "ms since 1970", "The last step that a member took in it."),
        Column("duration_ms", "long", "ms", "From the one to the other."),
        Column("members", "long", "", "How many members came to this epoch."),
        Column("moved", "long", "", "How many partitions got an owner in it."),
    ),
    "zombie_commits": (
        _OF_GROUP,
        _OF_MEMBER,
        Column("time_ms", "long", "ms since 1970", "When the commit was answered."),
        Column("member_epoch", "long", "", "The epoch that the member had."),
        *_OF_PARTITION,
        Column("outcome", "string", "", "`refused`, or `accepted`: stored over the owner's."),
        Column("cause", "string", "", "Why it was refused."),
        Column("owner", "string", "", "Who had the partition then; the first by name of several."),
    ),
}
"""The tables, in the order of their columns. Times are those of the coordinator's clock, where a
coordinator has written events."""
