"""join-group, sync-group, group-heartbeat, leave-group: members of the classic protocol.

Every member has a connection of its own, because JoinGroup and SyncGroup wait for other members:
``A: waits``. The answer is printed when it comes, after the output of the command that made it
come. Member ids are the coordinator's; the scenario knows a member by its name throughout.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from tests.scenarios.classic_texts import assignment_text, subscription_text
from tests.scenarios.notation import Arguments, NotationError, read_partitions
from tests.scenarios.scenario_run import DEFAULT_GROUP, ScenarioRun

__all__ = ["group_heartbeat", "join_group", "leave_group", "sync_group"]

_CONSUMER: Final = "consumer"


def join_group(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """JoinGroup. A member without an id sends none, is given one (MEMBER_ID_REQUIRED) and uses it
    from then on.

    join-group A topics=foo
    join-group A topics=(foo bar) protocols=(range sticky) instance=i1 session=10s timeout=30s
    join-group A topics=foo owned=(foo[0-2] bar[1]) owned-generation=1 rack=r1
    join-group A id="" ...                     (forget the id; or send any other: id=zz)
    join-group A type=connect bytes=00ff       (any protocol type, any metadata, in hex)
    join-group A topics=foo user-data=x        (or protocols=(range mine) user-data=(mine:x))

    Unless given the session timeout is 10 s, the rebalance timeout 30 s, the only protocol range,
    the type consumer; the subscription is one of ConsumerProtocol version 3 (``embedded=1``).
    Prints the generation, the protocol and who leads; the leader is shown the members.
    """
    name = arguments.word("a member")
    group = arguments.text("group", DEFAULT_GROUP) or ""
    protocols = arguments.words("protocols", ["range"]) or ()
    metadata = _subscriptions(arguments, protocols)
    request = JoinGroupRequest(
        group_id=scenario.group_id(group),
        member_id=_member_id(scenario, name, arguments),
        group_instance_id=arguments.text("instance"),
        protocol_type=arguments.text("type", _CONSUMER) or "",
        protocols=tuple(
            JoinGroupRequestProtocol(name=each, metadata=metadata[each]) for each in protocols
        ),
        session_timeout_ms=arguments.duration("session", "10s"),
        rebalance_timeout_ms=arguments.duration("timeout", "30s"),
    )
    version = arguments.number("version", 9)
    verbose = arguments.flag("verbose")

    def note(answer: Any) -> None:
        if answer.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            scenario.alias(answer.member_id, name)
        if answer.error_code == ErrorCode.NONE:
            member = scenario.member(name, group)
            member.epoch = answer.generation_id
            member.protocol = (answer.protocol_type or request.protocol_type, answer.protocol_name)

    def report(answer: Any) -> list[str]:
        return _joined(scenario, name, answer, verbose=verbose)

    return scenario.ask(name, request, version, note, report)


def _member_id(scenario: ScenarioRun, name: str, arguments: Arguments) -> str:
    given = arguments.text("id", scenario.known_id(name))
    return "" if given is None else scenario.member_id(given)


def _subscriptions(arguments: Arguments, protocols: tuple[str, ...]) -> dict[str, bytes]:
    """Protocol -> its metadata. They differ in nothing but the user data."""
    raw = arguments.text("bytes")
    if raw is not None:
        return dict.fromkeys(protocols, bytes.fromhex(raw))
    user_data: dict[str, bytes] = {}
    for text in arguments.words("user-data", []) or ():
        name, colon, data = text.rpartition(":")
        user_data |= dict.fromkeys((name,) if colon else protocols, data.encode())
    owned = [read_partitions(text) for text in arguments.words("owned", []) or ()]
    subscription = ConsumerSubscription(
        topics=arguments.words("topics", []) or (),
        owned_partitions=tuple(
            TopicPartitions(topic=topic, partitions=numbers) for topic, numbers, _ in owned
        ),
        generation_id=arguments.number("owned-generation", -1),
        rack_id=arguments.text("rack"),
    )
    version = arguments.number("embedded", 3)
    return {
        each: write_subscription(replace(subscription, user_data=user_data.get(each)), version)
        for each in protocols
    }


def _joined(scenario: ScenarioRun, name: str, answer: Any, *, verbose: bool) -> list[str]:
    if answer.error_code:
        lines = [f"{name}: {scenario.error_text(answer.error_code)}"]
    else:
        leads = (
            "leads" if answer.leader == answer.member_id else f"led by {_leader(scenario, answer)}"
        )
        skips = ", assigns nothing" if answer.skip_assignment else ""
        lines = [
            f"{name}: generation {answer.generation_id}, {answer.protocol_name}, {leads}{skips}"
        ]
    lines += sorted(f"  {_listed(scenario, member)}" for member in answer.members)
    if verbose:
        given = scenario.shown(answer.member_id) if answer.member_id else "none"
        leader = scenario.shown(answer.leader) if answer.leader else "none"
        lines.append(f"  member id {given}, leader {leader}, generation {answer.generation_id}")
        lines.append(
            f"  protocol type {_quoted(answer.protocol_type)}, name {_quoted(answer.protocol_name)}"
        )
    return lines


def _leader(scenario: ScenarioRun, answer: Any) -> str:
    return scenario.shown(answer.leader) or "nobody"


def _quoted(text: str | None) -> str:
    return "null" if text is None else f'"{text}"'


def _listed(scenario: ScenarioRun, member: Any) -> str:
    instance = "" if member.group_instance_id is None else f" (instance {member.group_instance_id})"
    return f"{scenario.shown_id(member.member_id)}{instance}: {subscription_text(member.metadata)}"


def sync_group(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """SyncGroup in the generation of the member's last JoinGroup; leaders bring the assignment.

    sync-group A assign=(A:foo[0-2] A:bar[0] B:foo[3-5])
    sync-group B
    sync-group B generation=9 instance=i1 type=consumer protocol=range version=5

    ``assign=()`` assigns nothing, ``user-data=x`` puts data beside every assignment.
    Prints what was assigned.
    """
    name = arguments.word("a member")
    group = arguments.text("group", DEFAULT_GROUP) or ""
    member_id = _member_id(scenario, name, arguments)
    member = scenario.member(member_id, group)
    kind, protocol = member.protocol
    version = arguments.number("version", 5)
    verbose = arguments.flag("verbose")
    request = SyncGroupRequest(
        group_id=scenario.group_id(group),
        generation_id=arguments.number("generation", member.epoch),
        member_id=member_id,
        group_instance_id=arguments.text("instance"),
        protocol_type=arguments.text("type", kind),
        protocol_name=arguments.text("protocol", protocol),
        assignments=_assignments(scenario, arguments),
    )

    def report(answer: Any) -> list[str]:
        lines = [f"{name}: {scenario.error_text(answer.error_code)}"]
        if not answer.error_code:
            lines = [f"{name}: assigned {assignment_text(answer.assignment)}"]
        if verbose:
            kind, protocol = _quoted(answer.protocol_type), _quoted(answer.protocol_name)
            lines.append(f"  protocol type {kind}, name {protocol}")
        return lines

    return scenario.ask(name, request, version, lambda _answer: None, report)


def _assignments(
    scenario: ScenarioRun, arguments: Arguments
) -> tuple[SyncGroupRequestAssignment, ...]:
    given: dict[str, dict[str, tuple[int, ...]]] = {}
    for text in arguments.words("assign", []) or ():
        name, colon, partitions = text.partition(":")
        if not colon:
            raise NotationError(f"{text!r} is not MEMBER:PARTITIONS")
        topic, numbers, _ = read_partitions(partitions)
        given.setdefault(scenario.member_id(name), {})[topic] = numbers
    data = arguments.text("user-data")
    return tuple(
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=write_assignment(
                ConsumerAssignment(
                    assigned_partitions=tuple(
                        TopicPartitions(topic=topic, partitions=numbers)
                        for topic, numbers in topics.items()
                    ),
                    user_data=None if data is None else data.encode(),
                )
            ),
        )
        for member_id, topics in given.items()
    )


def group_heartbeat(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Heartbeat, the classic one, in the generation of the member's last JoinGroup.

    group-heartbeat A
    group-heartbeat A generation=2 instance=i1 id=zz version=4
    """
    name = arguments.word("a member")
    group = arguments.text("group", DEFAULT_GROUP) or ""
    member_id = _member_id(scenario, name, arguments)
    request = HeartbeatRequest(
        group_id=scenario.group_id(group),
        generation_id=arguments.number("generation", scenario.member(member_id, group).epoch),
        member_id=member_id,
        group_instance_id=arguments.text("instance"),
    )
    answer = scenario.request(request, arguments.number("version", 4))
    return [f"{name}: {scenario.error_text(answer.error_code)}"]


def leave_group(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """LeaveGroup of one member or several; ``@i1`` names a static member by its instance id.

    leave-group A
    leave-group A B@i1 @i2 version=5

    Up to version 2 there is one member, and the answer is for the whole request.
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    version = arguments.number("version", 5)
    named = [arguments.word("members").partition("@") for _ in range(len(arguments.positional))]
    ids = [scenario.member_id(scenario.known_id(name) or name) for name, _, _ in named]
    if version < 3:
        request = LeaveGroupRequest(group_id=scenario.group_id(group), member_id=ids[0])
    else:
        members = tuple(
            LeaveGroupRequestMemberIdentity(
                member_id=member_id, group_instance_id=instance if at else None
            )
            for member_id, (_, at, instance) in zip(ids, named, strict=True)
        )
        request = LeaveGroupRequest(group_id=scenario.group_id(group), members=members)
    answer = scenario.request(request, version)
    lines = [
        f"{name}{at}{instance}: {scenario.error_text(each.error_code)}"
        for (name, at, instance), each in zip(named, answer.members, strict=bool(answer.members))
    ]
    if answer.error_code or not lines:
        lines.insert(0, f"{group}: {scenario.error_text(answer.error_code)}")
    return lines
