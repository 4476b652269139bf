"""state, timers, records, crash: looks behind the wire.

Real brokers show the first and the third through their log, ``__consumer_offsets``.
"""

from __future__ import annotations

from tests.scenarios.notation import Arguments, partitions_text
from tests.scenarios.scenario_run import DEFAULT_GROUP, MemberView, ScenarioRun
from tests.scenarios.state_log import fold, record_lines

__all__ = ["crash", "records", "state", "timers"]


def state(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The coordinator's own state of the group: epochs, and for each member its epoch, the epoch
    before, what is assigned, what is being revoked and what the target is.

    state
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    group_id = scenario.group_id(group)
    view = fold(scenario.backend.log(), group_id, scenario.topic_name)
    scenario.backend.check(group_id, view)
    if view is None:
        return [f"{group}: does not exist"]
    head = (
        f"{group}: {view.state}, group epoch {view.epoch}, assignment epoch {view.assignment_epoch}"
    )
    return [head, *(_line(scenario, member) for member in view.members)]


def _line(scenario: ScenarioRun, member: MemberView) -> str:
    revoking = f", revoking {partitions_text(member.revoking)}" if member.revoking else ""
    return (
        f"{scenario.shown(member.member_id)}: epoch {member.epoch} after {member.previous_epoch}, "
        f"{member.state}, assigned {partitions_text(member.assigned)}{revoking}, "
        f"target {partitions_text(member.target)}"
    )


def timers(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """The running timers of the group's members, and in how many ms each fires.

    timers
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    lines = scenario.backend.timers(scenario.group_id(group))
    return [scenario.shown(line) for line in lines] or ["none"]


def records(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """What the coordinator appended to its log since the last request was sent (or time was let
    pass), in order. Target assignments of several members are sorted: their order is arbitrary.

    records
    """
    lines = record_lines(scenario.new_records(), scenario.topic_name)
    return _members_sorted([scenario.shown(line) for line in lines]) or ["none"]


def _members_sorted(lines: list[str]) -> list[str]:
    """With the members of each classic group, which are indented, by name."""
    found: list[str] = []
    members: list[str] = []
    for line in lines:
        if line.startswith("  "):
            members.append(line)
        else:
            found += [*sorted(members), line]
            members = []
    return [*found, *sorted(members)]


def crash(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Throw the coordinator's state away and rebuild it from the log.

    crash
    """
    scenario.backend.crash()
    return []
