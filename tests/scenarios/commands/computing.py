"""prepare, install: a member computes the assignment (KIP-848, client side mode; not in Kafka)."""

from __future__ import annotations

import re
from typing import Final

from kip848_client.core.wire.messages.client_assignors import (
    AssignmentTopicPartitions,
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupPrepareAssignmentRequest,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestClientAssignor,
)
from tests.scenarios.notation import Arguments, NotationError
from tests.scenarios.scenario_run import DEFAULT_GROUP, Member, ScenarioRun

__all__ = ["install", "offers", "prepare"]

_OFFER: Final = re.compile(
    r"(?P<name>[\w.]*):(?P<low>-?\d+)-(?P<high>-?\d+)(?:@(?P<version>-?\d+))?(?:!(?P<reason>\d+))?"
    r"(?:#(?P<metadata>\w+))?"
)


def offers(
    texts: tuple[str, ...] | None,
) -> tuple[ConsumerGroupHeartbeatRequestClientAssignor, ...] | None:
    """``mine:1-5@3!2#text``: the assignor ``mine`` reads versions 1 to 5, its metadata is ``text``
    (nothing unless given) in version 3 (the highest unless given), and it wants a new target for
    reason 2 (0 unless given)."""
    if texts is None:
        return None
    found: list[ConsumerGroupHeartbeatRequestClientAssignor] = []
    for text in texts:
        match = _OFFER.fullmatch(text)
        if match is None:
            raise NotationError(f"not an assignor: {text!r}")
        found.append(
            ConsumerGroupHeartbeatRequestClientAssignor(
                name=match["name"],
                minimum_version=int(match["low"]),
                maximum_version=int(match["high"]),
                metadata_version=int(match["version"] or match["high"]),
                reason=int(match["reason"] or 0),
                metadata_bytes=(match["metadata"] or "").encode(),
            )
        )
    return tuple(found)


def prepare(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The member that was asked to compute takes the group as it is.

    prepare A
    prepare A epoch=1

    Prints the group epoch, the assignor, and every member with the version of its metadata.
    """
    member = _member(scenario, arguments)
    request = ConsumerGroupPrepareAssignmentRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=arguments.number("epoch", member.epoch),
    )
    response = scenario.request(request, 0)
    shown = scenario.shown(member.member_id)
    if response.error_code:
        return [f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"]
    member.prepared_epoch = response.group_epoch
    topics = sorted(f"{each.topic_name}({each.num_partitions})" for each in response.topics)
    what = f"group epoch {response.group_epoch}, assignor {response.assignor_name}"
    lines = [f"{shown}: {what}, topics {' '.join(topics)}"]
    for each in sorted(response.members, key=lambda each: scenario.shown(each.member_id)):
        version, target = each.assignor.metadata_version, each.topic_partitions
        what = f"epoch {each.member_epoch}, version {version}"
        if each.assignor.metadata_bytes:
            what += f", metadata {each.assignor.metadata_bytes.decode()}"
        given = scenario.partitions_text(target)
        lines.append(f"  {scenario.shown(each.member_id)}: {what}, target {given}")
    return lines


def install(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The member returns what it computed: the partitions of each member.

    install A A=foo[0-2] B=foo[3-5]
    install A A=(foo[0-5] bar[0]) epoch=1 prepared=2 version=3
    install A A=foo[0-2] c1=foo[3-5] metadata=(A:2:text c1:-1:more)
    install A error=5

    ``prepared`` is the group epoch; it and the member epoch are those of the last answers.
    ``metadata`` is what the assignor says to some of the members, and in which version.
    """
    member = _member(scenario, arguments)
    shown = scenario.shown(member.member_id)
    version = arguments.number("version", 1)
    said = _metadata(arguments.words("metadata") or ())
    request = ConsumerGroupInstallAssignmentRequest(
        group_id=scenario.group_id(member.group),
        member_id=member.member_id,
        member_epoch=arguments.number("epoch", member.epoch),
        group_epoch=arguments.number("prepared", member.prepared_epoch),
        error=arguments.number("error", 0),
        members=tuple(
            _row(scenario, name, arguments.words(name), said.get(name, (version, b"")))
            for name in list(arguments.options)
        ),
    )
    response = scenario.request(request, 0)
    if response.error_code:
        return [f"{shown}: {scenario.error_text(response.error_code, response.error_message)}"]
    return [f"{shown}: installed"]


def _member(scenario: ScenarioRun, arguments: Arguments) -> Member:
    name = arguments.word("a member")
    return scenario.member(name, arguments.text("group", DEFAULT_GROUP) or "")


def _metadata(texts: tuple[str, ...]) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for text in texts:
        name, version, said = text.split(":")
        found[name] = (int(version), said.encode())
    return found


def _row(
    scenario: ScenarioRun, name: str, texts: tuple[str, ...] | None, said: tuple[int, bytes]
) -> ConsumerGroupInstallAssignmentRequestMember:
    return ConsumerGroupInstallAssignmentRequestMember(
        member_id=scenario.member_id(name),
        partitions=tuple(
            AssignmentTopicPartitions(topic_id=topic_id, partitions=partitions)
            for _, topic_id, partitions in scenario.read_partitions(texts or ())
        ),
        metadata_version=said[0],
        metadata_bytes=said[1],
    )
