"""The picture of commits of members that had lost their partition."""

from __future__ import annotations

from collections import Counter
from typing import Final

from matplotlib.figure import Figure

from kip848_client.history.report._style import GREY, RED, figure, message, seconds, time_axis
from kip848_client.history.report._views import GroupView, short

__all__ = ["zombies_picture"]

_MEMBERS: Final = 15


def zombies_picture(view: GroupView) -> Figure:
    """One row per member; filled marks are offsets that were stored."""
    rows = view.zombie_commits
    if not rows:
        return message("No commit came from a member that had lost its partition.")
    stored_first = sorted(rows, key=lambda row: (row.outcome != "accepted", row.time_ms))
    members = list(dict.fromkeys(row.member_id for row in stored_first))
    shown = {member: number for number, member in enumerate(members[:_MEMBERS])}
    marks = Counter((row.member_id, row.time_ms, row.outcome) for row in rows)
    drawn = figure(1.3 + 0.3 * len(shown))
    axes = drawn.subplots()
    for outcome, marker, face, edge in (
        ("refused", "o", "white", GREY),
        ("accepted", "D", RED, RED),
    ):
        points = [each for each in marks if each[2] == outcome and each[0] in shown]
        if points:
            axes.scatter(
                [seconds(view, time_ms) for _, time_ms, _ in points],
                [shown[member] for member, _, _ in points],
                s=[min(30 + 6 * marks[each], 160) for each in points],
                marker=marker,
                facecolors=face,
                edgecolors=edge,
                linewidths=1.4,
                label="stored" if outcome == "accepted" else outcome,
                zorder=3,
                clip_on=False,
            )
    axes.set_yticks(range(len(shown)), [view.names.get(each, short(each)) for each in shown])
    axes.set_ylim(len(shown) - 0.4, -0.6)
    time_axis(axes, view)
    more = len(members) - len(shown)
    axes.set_title(
        "Commits of members that had lost their partition"
        + (f", first {_MEMBERS} of {len(members)} members" if more else "")
    )
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0.2)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    return drawn
