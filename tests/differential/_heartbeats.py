"""Choosers of ConsumerGroupHeartbeat requests: each builds one request, or none if it does not
apply.

Every function takes the state and returns an ``Ask`` or ``None``; the table at the end gives
weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kip848_client.core.types import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.differential._model import GroupModel, MemberModel, as_wire
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask

__all__ = [
    "HEARTBEATS",
    "Chooser",
    "acknowledge",
    "full_request",
    "heartbeat",
    "join",
    "join_fields",
    "join_like_another",
    "join_static",
    "leave",
    "leave_for_a_while",
    "of",
    "old_epoch",
    "rejoin",
    "resubscribe",
    "return_static",
    "steady",
    "stranger",
]

Chooser = Callable[[SequenceState], Ask | None]

_INSTANCES: Final = ("i1", "i2", "i3")
_REBALANCE_TIMEOUT_MS: Final = 120_000  # longer than any sequence: no timer decides an answer
_ASSIGNORS: Final = ("uniform", "range")
_MAX_EPOCH: Final = 2**31 - 1


def heartbeat(
    state: SequenceState, action: str, group: GroupModel, member_id: str, **fields: Any
) -> Ask:
    """A heartbeat of either version; a pattern needs version 1."""
    version = 1
    if fields.get("subscribed_topic_regex") is None and state.rng.random() < 0.15:
        version = 0
    message = ConsumerGroupHeartbeatRequest(group_id=group.group_id, member_id=member_id, **fields)
    return state.ask(action, message, version)


def of(
    state: SequenceState, action: str, group: GroupModel, member: MemberModel, **fields: Any
) -> Ask:
    """A heartbeat of a member that exists; its epoch and instance id unless others are given."""
    fields.setdefault("member_epoch", member.epoch)
    if member.instance_id is not None and state.rng.random() < 0.9:
        fields.setdefault("instance_id", member.instance_id)
    return heartbeat(state, action, group, member.member_id, **fields)


def subscription(state: SequenceState) -> dict[str, Any]:
    """The subscription fields of a first heartbeat."""
    rng = state.rng
    if state.uses_patterns and rng.random() < 0.6:
        fields: dict[str, Any] = {"subscribed_topic_regex": some_pattern(state)}
        if rng.random() < 0.25:
            fields["subscribed_topic_names"] = state.some_names(allow_empty=True)
        return fields
    return {"subscribed_topic_names": state.some_names(allow_empty=True)}


def some_pattern(state: SequenceState) -> str:
    rng = state.rng
    if rng.random() < 0.15:
        return rng.choice(
            ["topic-[", "(?=x)", "a**", "(", "topic-(?P<x>a", "[z-a]", "\\8", "x{2,1}"]
        )
    names = sorted(state.topics)
    return rng.choice(
        [
            "topic-.*",
            "|".join(rng.sample(names, min(2, len(names)))),
            f"{state.topic_prefix}-.*",
            "nothing-matches",
            rng.choice(names),
            "topic-[abc].*",
            "",
        ]
    )


def join_fields(state: SequenceState) -> dict[str, Any]:
    rng = state.rng
    fields = {
        "member_epoch": 0,
        "rebalance_timeout_ms": _REBALANCE_TIMEOUT_MS,
        "topic_partitions": (),
        **subscription(state),
    }
    if rng.random() < 0.3:
        fields["server_assignor"] = rng.choice(_ASSIGNORS)
    if rng.random() < 0.1:
        fields["rack_id"] = f"rack-{rng.randrange(3)}"
    return fields


def join(state: SequenceState) -> Ask:
    group = state.group()
    return heartbeat(state, "join", group, state.new_member_id(), **join_fields(state))


def join_like_another(state: SequenceState) -> Ask | None:
    """Same subscription as a member that exists: the homogeneous assignor's case."""
    group = state.main
    other = group.pick(state.rng)
    if other is None or not other.names:
        return None
    fields = join_fields(state)
    fields.pop("subscribed_topic_regex", None)
    fields["subscribed_topic_names"] = other.names
    return heartbeat(state, "join-alike", group, state.new_member_id(), **fields)


def join_static(state: SequenceState) -> Ask:
    """A static join; the instance may be free, held by a live member, or away."""
    group = state.group()
    fields = join_fields(state)
    fields["instance_id"] = state.rng.choice(_INSTANCES)
    return heartbeat(state, "join-static", group, state.new_member_id(), **fields)


def return_static(state: SequenceState) -> Ask | None:
    """A static member that is away comes back, under a new or its old member id."""
    group = state.main
    away = [member for member in group.members.values() if member.is_away]
    if not away:
        return None
    member = state.rng.choice(away)
    fields = join_fields(state)
    fields["instance_id"] = member.instance_id
    if member.names and state.rng.random() < 0.6:
        fields.pop("subscribed_topic_regex", None)
        fields["subscribed_topic_names"] = member.names
    same = state.rng.random() < 0.4
    member_id = member.member_id if same else state.new_member_id()
    return heartbeat(state, "return-static", group, member_id, **fields)


def rejoin(state: SequenceState) -> Ask | None:
    """Epoch 0 again for a member that is known."""
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    fields = join_fields(state)
    if state.rng.random() < 0.6 and member.names:
        fields.pop("subscribed_topic_regex", None)
        fields["subscribed_topic_names"] = member.names
    return of(state, "rejoin", group, member, **fields)


def steady(state: SequenceState) -> Ask | None:
    group = state.main
    member = group.pick(state.rng)
    return None if member is None else of(state, "steady", group, member)


def acknowledge(state: SequenceState, member: MemberModel | None = None) -> Ask | None:
    group = state.main
    member = member or group.pick(state.rng)
    if member is None:
        return None
    owned = as_wire(member.assigned)
    return of(state, "acknowledge", group, member, topic_partitions=owned)


def acknowledge_wrong(state: SequenceState) -> Ask | None:
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    owned = as_wire(state.wrong_partitions(member))
    return of(state, "acknowledge-wrong", group, member, topic_partitions=owned)


def full_request(state: SequenceState) -> Ask | None:
    """Everything repeated, as a client that lost an answer would."""
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    right = state.rng.random() < 0.7
    owned = member.assigned if right else state.wrong_partitions(member)
    fields: dict[str, Any] = {
        "rebalance_timeout_ms": _REBALANCE_TIMEOUT_MS,
        "topic_partitions": as_wire(owned),
    }
    if member.pattern:
        fields["subscribed_topic_regex"] = member.pattern
    if member.names or not member.pattern:
        fields["subscribed_topic_names"] = member.names
    return of(state, "full", group, member, **fields)


def old_epoch(state: SequenceState) -> Ask | None:
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    rng = state.rng
    epoch = rng.choice([member.previous_epoch, member.previous_epoch, member.epoch - 1])
    fields: dict[str, Any] = {"member_epoch": max(epoch, 1)}
    choice = rng.randrange(4)
    if choice == 0:
        fields["topic_partitions"] = as_wire(member.assigned)
    elif choice == 1:
        fields["topic_partitions"] = as_wire(member.owned)
    elif choice == 2:
        fields["topic_partitions"] = as_wire(state.wrong_partitions(member))
    return of(state, "old-epoch", group, member, **fields)


def future_epoch(state: SequenceState) -> Ask | None:
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    epoch = state.rng.choice([member.epoch + 1, member.epoch + 100, _MAX_EPOCH])
    owned = as_wire(member.assigned) if state.rng.random() < 0.5 else None
    return of(state, "future-epoch", group, member, member_epoch=epoch, topic_partitions=owned)


def resubscribe(state: SequenceState) -> Ask | None:
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    rng = state.rng
    fields: dict[str, Any] = {}
    if state.uses_patterns and rng.random() < 0.5:
        fields["subscribed_topic_regex"] = some_pattern(state)
        if rng.random() < 0.3:
            fields["subscribed_topic_names"] = state.some_names(allow_empty=True)
    else:
        fields["subscribed_topic_names"] = state.some_names(allow_empty=True)
        if member.pattern and rng.random() < 0.3:
            fields["subscribed_topic_regex"] = ""
    if rng.random() < 0.4:
        fields["topic_partitions"] = as_wire(member.assigned)
    return of(state, "resubscribe", group, member, **fields)


def change_details(state: SequenceState) -> Ask | None:
    """What a member may change without its subscription: assignor, rack, rebalance timeout."""
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    rng = state.rng
    fields: dict[str, Any] = {}
    if rng.random() < 0.7:
        fields["server_assignor"] = rng.choice([*_ASSIGNORS, *_ASSIGNORS, "magic", ""])
    if rng.random() < 0.3:
        fields["rack_id"] = f"rack-{rng.randrange(3)}"
    if rng.random() < 0.3:
        fields["rebalance_timeout_ms"] = _REBALANCE_TIMEOUT_MS + rng.randrange(3)
    return of(state, "change-details", group, member, **fields)


def leave(state: SequenceState) -> Ask | None:
    group = state.group()
    member = group.pick(state.rng)
    if member is None:
        return None
    return of(state, "leave", group, member, member_epoch=LEAVE_EPOCH)


def leave_for_a_while(state: SequenceState) -> Ask | None:
    """-2, mostly of a static member."""
    group = state.main
    static = [each for each in group.members.values() if each.instance_id is not None]
    dynamic = state.rng.random() < 0.1
    member = group.pick(state.rng) if dynamic or not static else state.rng.choice(static)
    if member is None or (member.instance_id is None and not dynamic):
        return None
    fields: dict[str, Any] = {"member_epoch": STATIC_LEAVE_EPOCH}
    if state.rng.random() < 0.1:
        fields["instance_id"] = state.rng.choice([None, "i9", *_INSTANCES])
    return of(state, "leave-for-a-while", group, member, **fields)


def stranger(state: SequenceState) -> Ask:
    """A member that the group does not know (any more), or a group that does not exist."""
    rng = state.rng
    group = rng.choice([state.main, state.main, state.side])
    gone = rng.choice(group.gone) if group.gone and rng.random() < 0.6 else state.new_member_id()
    fields: dict[str, Any] = {"member_epoch": rng.choice([1, 2, 7, -1, -2])}
    if rng.random() < 0.4:
        fields["instance_id"] = rng.choice([*_INSTANCES, "i9"])
    if rng.random() < 0.3:
        fields["topic_partitions"] = ()
    return heartbeat(state, "stranger", group, gone, **fields)


def impostor(state: SequenceState) -> Ask | None:
    """Somebody else's instance id, or one's own member id under another instance id."""
    rng = state.rng
    group = state.main
    static = [each for each in group.members.values() if each.instance_id is not None]
    if not static:
        return None
    held = rng.choice(static)
    others = [*group.members, *group.gone, state.new_member_id()]
    fields: dict[str, Any] = {
        "instance_id": held.instance_id,
        "member_epoch": rng.choice([held.epoch, held.epoch, 1, LEAVE_EPOCH, STATIC_LEAVE_EPOCH]),
    }
    if rng.random() < 0.2:
        fields["instance_id"] = "i9"
        return heartbeat(state, "impostor", group, held.member_id, **fields)
    return heartbeat(state, "impostor", group, rng.choice(others), **fields)


def solo(state: SequenceState) -> Ask:
    """A member whose id the broker makes up (version 0), alone in its group: with company, the
    assignment would depend on the hash of an id that the two sides choose differently."""
    group = state.solo
    member = group.pick(state.rng)
    if member is None:
        message = ConsumerGroupHeartbeatRequest(group_id=group.group_id, **join_fields(state))
        message.subscribed_topic_regex = None
        message.subscribed_topic_names = state.some_names()
        return state.ask("solo", message, 0)
    owned = as_wire(member.assigned) if state.rng.random() < 0.5 else None
    epoch = state.rng.choice([member.epoch, member.epoch, member.epoch + 1, LEAVE_EPOCH])
    return of(state, "solo", group, member, member_epoch=epoch, topic_partitions=owned)


def invalid(state: SequenceState) -> Ask:
    """Requests that fail validation, alone or two faults at a time."""
    rng = state.rng
    group = state.main
    member = group.pick(rng)
    member_id = member.member_id if member is not None else state.new_member_id()
    fields: dict[str, Any] = join_fields(state) if rng.random() < 0.6 else {"member_epoch": 1}
    fields["group_id"] = group.group_id
    fields["member_id"] = member_id
    fault_pool: list[dict[str, Any]] = [
        {"group_id": rng.choice(["", "  "])},
        {"member_id": rng.choice(["", " "])},
        {"instance_id": rng.choice(["", " \t"])},
        {"rack_id": rng.choice(["", " "])},
        {"rebalance_timeout_ms": -1, "member_epoch": 0},
        {"topic_partitions": None, "member_epoch": 0},
        {"topic_partitions": as_wire([(state.some_topic().topic_id, 0)]), "member_epoch": 0},
        {"subscribed_topic_names": None, "subscribed_topic_regex": None, "member_epoch": 0},
        {"member_epoch": -2, "instance_id": None},
        {"member_epoch": rng.choice([-3, -100, -(2**31)])},
        {"server_assignor": rng.choice(["magic", "Uniform", " range", ""])},
    ]
    for fault in rng.sample(fault_pool, rng.choice([1, 1, 2])):
        fields.update(fault)
    version = 0 if rng.random() < 0.3 else 1
    if fields["member_id"].strip() == "" and fields["member_epoch"] == 0:
        version = 1  # version 0 would make up an id, and the two brokers different ones
    if version == 0:
        fields.pop("subscribed_topic_regex", None)
    return state.ask("invalid", ConsumerGroupHeartbeatRequest(**fields), version)


HEARTBEATS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("join", 4, join),
    ("join-alike", 4, join_like_another),
    ("join-static", 4, join_static),
    ("return-static", 4, return_static),
    ("rejoin", 2, rejoin),
    ("steady", 10, steady),
    ("acknowledge", 10, acknowledge),
    ("acknowledge-wrong", 3, acknowledge_wrong),
    ("full", 3, full_request),
    ("old-epoch", 4, old_epoch),
    ("future-epoch", 1, future_epoch),
    ("resubscribe", 5, resubscribe),
    ("change-details", 4, change_details),
    ("leave", 3, leave),
    ("leave-for-a-while", 4, leave_for_a_while),
    ("stranger", 2, stranger),
    ("impostor", 2, impostor),
    ("solo", 1, solo),
    ("invalid", 2, invalid),
)
"""(name, weight, chooser)."""
