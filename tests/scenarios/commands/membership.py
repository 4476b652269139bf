"""join, heartbeat, leave, stabilize: ConsumerGroupHeartbeat (KIP-848) in its uses."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.scenarios.commands.computing import offers
from tests.scenarios.notation import Arguments, NotationError, partitions_text
from tests.scenarios.scenario_run import DEFAULT_GROUP, Member, ScenarioRun

__all__ = ["heartbeat", "join", "leave", "stabilize"]

_ROUNDS_MAX: Final = 12


def join(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """A heartbeat with epoch 0, as a member sends that wants to enter the group.

    join A topics=foo
    join A topics=(foo bar) regex="ba.*" instance=i1 rack=r1 assignor=range timeout=10s
    join "" version=0 topics=foo as=M     (the coordinator chooses the id; it is shown as M)

    Unless given, the rebalance timeout is 30 s and the owned partitions an empty list; topics,
    regex, instance, rack, assignor and offers (client-side assignors, see ``prepare``) are null.
    ``none`` sends null (-1 for the timeout), e.g. owned=none. The epoch may be overridden, and
    ``verbose`` prints the whole response.
    """
    arguments.options.setdefault("owned", [])
    arguments.options.setdefault("timeout", "30s")
    arguments.options.setdefault("epoch", str(JOIN_EPOCH))
    return heartbeat(scenario, arguments)


def heartbeat(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Any other heartbeat. It carries the group, the member id and the member epoch of the last
    response, and nothing else unless it is given.

    heartbeat A
    heartbeat A epoch=1 owned=foo[0-2]
    heartbeat A owned=(foo[0-2] bar[1]) topics=(foo bar) timeout=30s verbose

    Prints the new epoch, and the assignment when the response has one.
    """
    name = arguments.word("a member")
    group = arguments.text("group", DEFAULT_GROUP) or ""
    member = scenario.member(name, group)
    verbose = arguments.flag("verbose")
    shown = arguments.text("as", name) or name
    version = arguments.number("version", 1)
    request = ConsumerGroupHeartbeatRequest(
        group_id=scenario.group_id(group),
        member_id=member.member_id,
        member_epoch=arguments.number("epoch", member.epoch),
        instance_id=arguments.text("instance"),
        rack_id=arguments.text("rack"),
        rebalance_timeout_ms=arguments.duration("timeout", None),
        subscribed_topic_names=arguments.words("topics"),
        subscribed_topic_regex=arguments.text("regex"),
        server_assignor=arguments.text("assignor"),
        topic_partitions=_owned(scenario, arguments.words("owned")),
        client_assignors=offers(arguments.words("offers")),
    )
    response = scenario.request(request, version)
    if not name and response.error_code == 0:
        scenario.alias(response.member_id, shown)
        member = scenario.member(shown, group)
    _remember(scenario, member, request, response)
    return _report(scenario, shown, response, verbose=verbose)


def leave(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """A heartbeat with epoch -1; with ``temporarily`` -2, which a static member sends.

    leave A
    leave A temporarily instance=i1
    """
    temporarily = arguments.flag("temporarily")
    epoch = STATIC_LEAVE_EPOCH if temporarily else LEAVE_EPOCH
    arguments.options.setdefault("epoch", str(epoch))
    return heartbeat(scenario, arguments)


def stabilize(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Every member (or those named) heartbeats and acknowledges, as a well-behaved client does,
    until nothing changes any more. Prints where each of them ends.

    stabilize
    stabilize A B
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    names = [arguments.word("a member") for _ in range(len(arguments.positional))]
    chosen = [scenario.member(name, group) for name in names] or [
        member for member in scenario.members.values() if member.group == group and member.epoch > 0
    ]
    for _ in range(_ROUNDS_MAX):
        before = [(member.epoch, dict(member.owned)) for member in chosen]
        for member in sorted(chosen, key=lambda each: each.member_id):
            problem = _one_step(scenario, member)
            if problem is not None:
                return [problem]
        idle = not any(member.must_acknowledge for member in chosen)
        if idle and before == [(member.epoch, dict(member.owned)) for member in chosen]:
            break
    else:
        raise NotationError(f"the group did not settle in {_ROUNDS_MAX} rounds")
    return [_where(scenario, member) for member in sorted(chosen, key=lambda each: each.member_id)]


def _where(scenario: ScenarioRun, member: Member) -> str:
    owned = partitions_text(member.owned)
    return f"{scenario.shown(member.member_id)}: epoch {member.epoch}, owns {owned}"


def _one_step(scenario: ScenarioRun, member: Member) -> str | None:
    owned = None
    if member.must_acknowledge:
        owned = [f"{topic}[{','.join(map(str, ps))}]" for topic, ps in member.owned.items()]
    request = ConsumerGroupHeartbeatRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=member.epoch,
        topic_partitions=_owned(scenario, None if owned is None else tuple(owned)),
    )
    response = scenario.request(request, 1)
    _remember(scenario, member, request, response)
    if response.error_code:
        return _report(scenario, scenario.shown(member.member_id), response, verbose=False)[0]
    return None


def _owned(
    scenario: ScenarioRun, texts: tuple[str, ...] | None
) -> tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None:
    if texts is None:
        return None
    return tuple(
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id, partitions=partitions)
        for _, topic_id, partitions in scenario.read_partitions(texts)
    )


def _remember(
    scenario: ScenarioRun, member: Member, request: ConsumerGroupHeartbeatRequest, response: Any
) -> None:
    if response.error_code:
        return
    member.epoch = response.member_epoch
    if request.topic_partitions is not None:
        member.must_acknowledge = False
    if response.assignment is not None:
        member.owned = scenario.by_name(response.assignment.topic_partitions)
        member.must_acknowledge = True


def _report(scenario: ScenarioRun, name: str, response: Any, *, verbose: bool) -> list[str]:
    shown = name or '""'
    if response.error_code:
        lines = [f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"]
    elif response.assignment is None:
        lines = [f"{shown}: epoch {response.member_epoch}"]
    else:
        given = scenario.partitions_text(response.assignment.topic_partitions)
        lines = [f"{shown}: epoch {response.member_epoch}, assignment {given}"]
        if response.assignment.pending_topic_partitions:
            pending = scenario.partitions_text(response.assignment.pending_topic_partitions)
            lines[0] += f", waits for {pending}"
        if response.assignment.metadata_bytes:
            lines[0] += f", metadata {response.assignment.metadata_bytes.decode()}"
        if response.assignment.error:
            lines[0] += f", error {response.assignment.error} of the assignor"
    if response.should_compute_assignment:
        lines[0] += ", computes"
    if verbose:
        member_id = "null" if response.member_id is None else f'"{response.member_id}"'
        if response.member_id and scenario.shown(response.member_id) != response.member_id:
            member_id = f"of {len(response.member_id)} characters, chosen by the coordinator"
        lines.append(f"  member id {member_id}")
        lines.append(f"  next heartbeat in {response.heartbeat_interval_ms} ms")
        lines.append(f"  throttled for {response.throttle_time_ms} ms")
    return lines
