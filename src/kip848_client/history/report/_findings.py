"""The findings, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from kip848_client.history.core import Tables
from kip848_client.history.recording import Record
from kip848_client.history.report._views import GroupView, duration_text, short

__all__ = ["Figure", "Finding", "figures_of", "findings_of", "notes_of", "scope_of"]

_WORTH_TELLING_MS: Final = 20
_HOW: Final = {
    "vanished": "{} vanished",
    "revoked": "{} gave it up",
    "lost": "{} lost it",
    "assigned": "{} was given it again",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    Attributes:
        text: A sentence.
        good: Nothing to worry about.
    """

    text: str
    good: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure of a group, with its meaning."""

    value: str
    what: str
    good: bool = True


def plural(number: int, one: str, many: str | None = None) -> str:
    """``1 member``, ``2,000 members``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def scope_of(view: GroupView) -> str:
    """Return the scope of the events."""
    topics = len({row.topic for row in view.partition_downtime})
    members = plural(len(view.names), "member")
    what = f"{plural(len(view.partition_downtime), 'partition')} of {plural(topics, 'topic')}"
    lasted = duration_text(view.end_ms - view.start_ms)
    when = (
        f"{view.at(view.start_ms)} to {view.at(view.end_ms)} UTC" if view.is_real else "simulated"
    )
    return f"{what}, {members}, {plural(len(view.events), 'event')} in {lasted} ({when})"


def findings_of(view: GroupView) -> list[Finding]:
    """State what was found of a group, one measure after the other. Raises nothing.

    Args:
        view: The group.

    Returns:
        The findings, in order.
    """
    return [_downtime(view), _rebalances(view), _heartbeats(view), *_zombies(view)]


def figures_of(view: GroupView) -> list[Figure]:
    """The numbers on top."""
    owned_ms = sum(row.last_owned_ms - row.first_owned_ms for row in view.partition_downtime)
    down_ms = sum(row.downtime_ms for row in view.partition_downtime)
    took = sorted(row.duration_ms for row in view.rebalance_duration)
    worst = max((gap.end_ms - gap.start_ms for gap in view.gaps), default=0)
    p99 = max((row.p99_ms for row in view.heartbeat_sla if row.p99_ms is not None), default=None)
    stored = sum(row.outcome == "accepted" for row in view.zombie_commits)
    refused = len(view.zombie_commits) - stored
    return [
        Figure(_percent(owned_ms - down_ms, owned_ms), "of the time partitions had an owner"),
        Figure(duration_text(worst) if worst else "none", "longest gap of a partition", not worst),
        Figure(duration_text(took[-1]) if took else "none", "longest rebalance"),
        Figure(
            "unknown" if p99 is None else duration_text(p99),
            "99 % of heartbeats answered in, worst member",
            p99 is None or p99 <= view.sla_ms,
        ),
        Figure(
            f"{stored}" if stored or not refused else f"{refused}",
            "zombie commits stored" if stored or not refused else "zombie commits, all refused",
            not stored,
        ),
    ]


def _percent(part: int, whole: int) -> str:
    if not whole:
        return "unknown"
    share = 100 * part / whole
    if part == whole:
        return "100 %"
    return f"{min(share, 99.99):.2f} %" if share > 99 else f"{share:.1f} %"


def _downtime(view: GroupView) -> Finding:
    rows = view.partition_downtime
    if not rows:
        return Finding("No member owned a partition.", good=False)
    down = [row for row in rows if row.downtime_ms]
    if not down:
        return Finding("No partition was without an owner after its first one.", good=True)
    worst = max(view.gaps, key=lambda gap: (gap.end_ms - gap.start_ms, -gap.start_ms))
    who = f"{_count_of(len(down), len(rows))} without an owner at some time"
    total = duration_text(sum(row.downtime_ms for row in down))
    same = sum(gap[3:5] == worst[3:5] for gap in view.gaps) - 1
    others = f" and {plural(same, 'other')}" if same else ""
    how = _HOW.get(worst.how, "{} had it before").format(view.names.get(worst.before, "its owner"))
    gap = duration_text(worst.end_ms - worst.start_ms)
    where = f"{short(worst.topic)}-{worst.partition}{others}"
    return Finding(
        f"{who}, {total} added up. The longest gap, {gap}, was of {where}, from "
        f"{view.at(worst.start_ms)} on: {how}.",
        good=False,
    )


def _count_of(some: int, many: int) -> str:
    if some == many:
        return "The partition was" if many == 1 else f"All {many:,} partitions were"
    return f"{some:,} of {many:,} partitions {'was' if some == 1 else 'were'}"


def _rebalances(view: GroupView) -> Finding:
    rows = view.rebalance_duration
    if not rows:
        return Finding("There was no rebalance.", good=True)
    longest = max(rows, key=lambda row: row.duration_ms)
    took = duration_text(longest.duration_ms)
    if len(rows) == 1:
        members = plural(longest.members, "member")
        return Finding(f"One rebalance, of {members}: it took {took}.", good=True)
    half = duration_text(median(row.duration_ms for row in rows))
    text = (
        f"{len(rows):,} rebalances, half of them done in {half}. The longest, to epoch "
        f"{longest.epoch}, took {took}."
    )
    return Finding(text, good=True)


def _heartbeats(view: GroupView) -> Finding:
    rows = view.heartbeat_sla
    answered = sum(row.heartbeats for row in rows)
    measured = sum(row.heartbeats for row in rows if row.p50_ms is not None)
    in_time = sum(row.in_time for row in rows)
    lost, refused = sum(row.lost for row in rows), sum(row.refused for row in rows)
    if not answered + lost + refused:
        return Finding("There are no heartbeats in these events.", good=False)
    parts = [f"{plural(answered, 'heartbeat')} answered"]
    if measured:
        share = _percent(in_time, measured)
        parts.append(f"{share} of them within {duration_text(view.sla_ms)}")
    if lost:
        parts.append(f"{lost:,} lost")
    if refused:
        parts.append(f"{refused:,} refused")
    text = ", ".join(parts) + "."
    silent = max(rows, key=lambda row: row.longest_silence_ms)
    if silent.longest_silence_ms:
        who = view.names.get(silent.member_id, short(silent.member_id))
        text += f" The longest silence was {duration_text(silent.longest_silence_ms)}, of {who}."
    return Finding(text, good=not lost + refused and in_time == measured)


def _zombies(view: GroupView) -> list[Finding]:
    by_outcome = Counter(row.outcome for row in view.zombie_commits)
    refused, stored = by_outcome["refused"], by_outcome["accepted"]
    found: list[Finding] = []
    if stored:
        members = {row.member_id for row in view.zombie_commits if row.outcome == "accepted"}
        names = _some(sorted(view.names.get(each, short(each)) for each in members))
        text = (
            f"{plural(stored, 'offset')} of {names} "
            f"{'was' if stored == 1 else 'were'} stored while another member owned the partition: "
            "records may be skipped, or processed twice."
        )
        found.append(Finding(text, good=False))
    if refused:
        text = (
            f"{plural(refused, 'offset')} came from members that had lost the partition, and "
            f"{'was' if refused == 1 else 'were'} refused: nothing was overwritten."
        )
        found.append(Finding(text, good=True))
    return found or [
        Finding("No commit came from a member that had lost its partition.", good=True)
    ]


def _some(names: Sequence[str]) -> str:
    if len(names) > 3:
        return f"{', '.join(names[:3])} and {len(names) - 3} others"
    return " and ".join(names)


def notes_of(tables: Tables, record: Record) -> list[str]:
    """Notes about the events themselves."""
    notes = [
        f"The clock of {short(host)} was put right by {duration_text(abs(offset))}: it was "
        f"{'behind' if offset > 0 else 'ahead of'} the coordinator's."
        for host, offset in list(tables.clock_offsets.items())[:5]
        if abs(offset) >= _WORTH_TELLING_MS
    ]
    twice = len(record.events) - len(tables.events)
    if twice:
        notes.append(f"{plural(twice, 'event')} occurred twice; duplicates count once.")
    if record.missing:
        verb = "is" if record.missing == 1 else "are"
        notes.append(f"{plural(record.missing, 'event')} {verb} missing in these files.")
    if record.cut:
        verb = "ends" if record.cut == 1 else "end"
        notes.append(
            f"{plural(record.cut, 'file')} {verb} in the middle of a line: the writer was killed."
        )
    if record.bad:
        first = record.complaints[0]
        verb = "is" if record.bad == 1 else "are"
        notes.append(
            f"{plural(record.bad, 'line')} {verb} no events, the first in {short(first.path, 60)}, "
            f"line {first.line}: {short(first.why, 160)}."
        )
    return notes
