"""describe, describe-classic, list, delete-group: what an administrator sees of groups."""

from __future__ import annotations

from typing import Any

from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from tests.scenarios.classic_texts import assignment_text, subscription_text
from tests.scenarios.notation import Arguments, partitions_text, words
from tests.scenarios.scenario_run import DEFAULT_GROUP, ScenarioRun

__all__ = ["delete_group", "describe", "describe_classic", "list_groups", "targets"]


def _described(scenario: ScenarioRun, group: str) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=(scenario.group_id(group),))
    return scenario.request(request, 1).groups[0]


def describe(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """ConsumerGroupDescribe of a group: what any client may see.

    describe
    describe group=other
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    answer = _described(scenario, group)
    if answer.error_code:
        return [f"{group}: {scenario.error_text(answer.error_code, answer.error_message)}"]
    head = (
        f"{group}: {answer.group_state}, group epoch {answer.group_epoch}, "
        f"assignment epoch {answer.assignment_epoch}, assignor {answer.assignor_name}"
    )
    if answer.is_client_assignor:
        head += " of a member"
    members = sorted(answer.members, key=lambda each: each.member_id)
    return [head, *(_member_line(scenario, member) for member in members)]


def targets(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The target assignments alone, as ConsumerGroupDescribe has them: a member a line.

    targets
    """
    answer = _described(scenario, arguments.text("group", DEFAULT_GROUP) or "")
    members = sorted(answer.members, key=lambda each: each.member_id)
    return [
        f"{scenario.shown(member.member_id)} {_assigned(member.target_assignment)}"
        for member in members
    ]


def _assigned(assignment: Any) -> str:
    given = assignment.topic_partitions
    text = partitions_text({each.topic_name: each.partitions for each in given})
    if assignment.metadata_version or assignment.metadata_bytes:
        said = assignment.metadata_bytes.decode() or "no metadata"
        text += f" ({said} in version {assignment.metadata_version})"
    return f"{text} (error {assignment.error})" if assignment.error else text


def _member_line(scenario: ScenarioRun, member: Any) -> str:
    pieces = [f"epoch {member.member_epoch}"]
    pieces += [f"instance {member.instance_id}"] if member.instance_id is not None else []
    pieces += [f"rack {member.rack_id}"] if member.rack_id is not None else []
    pieces += ["classic"] if member.member_type == 0 else []
    pieces.append(f"topics {words(member.subscribed_topic_names)}")
    pieces += [f"regex {member.subscribed_topic_regex}"] if member.subscribed_topic_regex else []
    pieces.append(f"assignment {_assigned(member.assignment)}")
    pieces.append(f"target {_assigned(member.target_assignment)}")
    return f"{scenario.shown(member.member_id)}: {', '.join(pieces)}"


def describe_classic(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """DescribeGroups, the request for classic groups. What members subscribe to is shown only while
    the group is Stable.

    describe-classic version=5
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    request = DescribeGroupsRequest(groups=(scenario.group_id(group),))
    answer = scenario.request(request, arguments.number("version", 6)).groups[0]
    result = scenario.error_text(answer.error_code, answer.error_message)
    head = f"{group}: {result}, state {answer.group_state}, {len(answer.members)} members"
    if answer.protocol_type:
        head += f", {answer.protocol_type} {answer.protocol_data or 'without a protocol'}"
    return [head, *sorted(_classic_member(scenario, member) for member in answer.members)]


def _classic_member(scenario: ScenarioRun, member: Any) -> str:
    pieces = [] if member.group_instance_id is None else [f"instance {member.group_instance_id}"]
    pieces.append(subscription_text(member.member_metadata))
    pieces.append(f"assignment {assignment_text(member.member_assignment)}")
    return f"  {scenario.shown_id(member.member_id)}: {', '.join(pieces)}"


def list_groups(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """ListGroups, of which only the scenario's own groups are printed.

    list
    list states=(Stable Empty) types=consumer
    """
    request = ListGroupsRequest(
        states_filter=arguments.words("states", []) or (),
        types_filter=arguments.words("types", []) or (),
    )
    response = scenario.request(request, 5)
    if response.error_code:
        return [scenario.error_text(response.error_code)]
    ours = [each for each in response.groups if each.group_id.endswith(scenario.suffix)]
    return [
        f"{scenario.shown(each.group_id)}: type {each.group_type}, "
        f'protocol type "{each.protocol_type}", {each.group_state}'
        for each in sorted(ours, key=lambda each: each.group_id)
    ] or ["no groups"]


def delete_group(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """DeleteGroups of one group.

    delete-group
    delete-group group=other
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    request = DeleteGroupsRequest(groups_names=(scenario.group_id(group),))
    answer = scenario.request(request, arguments.number("version", 2)).results[0]
    return [f"{group}: {scenario.error_text(answer.error_code, answer.error_message)}"]
