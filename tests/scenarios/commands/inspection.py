"""state, timers, records, crash: looks behind the wire.

Real brokers show the first and the third through their log, ``__consumer_offsets``.
"""

from __future__ import annotations

from tests.scenarios.notation import Arguments, partitions_text
from tests.scenarios.stage import DEFAULT_GROUP, MemberView, Stage
from tests.scenarios.state_log import fold, record_lines

__all__ = ["crash", "records", "state", "timers"]


def state(stage: Stage, arguments: Arguments) -> list[str]:
    """The coordinator's own state of the group: epochs, and for each member its epoch, the epoch
    before, what is assigned, what is being revoked and what the target is.

    state
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    group_id = stage.group_id(group)
    view = fold(stage.backend.log(), group_id, stage.topic_name)
    stage.backend.check(group_id, view)
    if view is None:
        return [f"{group}: does not exist"]
    head = (
        f"{group}: {view.state}, group epoch {view.epoch}, assignment epoch {view.assignment_epoch}"
    )
    return [head, *(_line(stage, member) for member in view.members)]


def _line(stage: Stage, member: MemberView) -> str:
    revoking = f", revoking {partitions_text(member.revoking)}" if member.revoking else ""
    return (
        f"{stage.shown(member.member_id)}: epoch {member.epoch} after {member.previous_epoch}, "
        f"{member.state}, assigned {partitions_text(member.assigned)}{revoking}, "
        f"target {partitions_text(member.target)}"
    )


def timers(stage: Stage, arguments: Arguments) -> list[str]:
    """The running timers of the group's members, and in how many ms each fires.

    timers
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    lines = stage.backend.timers(stage.group_id(group))
    return [stage.shown(line) for line in lines] or ["none"]


def records(stage: Stage, arguments: Arguments) -> list[str]:
    """What the coordinator appended to its log since the last request was sent (or time was let
    pass), in order. Target assignments of several members are sorted: their order is arbitrary.

    records
    """
    lines = record_lines(stage.new_records(), stage.topic_name)
    return _members_sorted([stage.shown(line) for line in lines]) or ["none"]


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


def crash(stage: Stage, arguments: Arguments) -> list[str]:
    """Throw the coordinator's state away and rebuild it from the log.

    crash
    """
    stage.backend.crash()
    return []
