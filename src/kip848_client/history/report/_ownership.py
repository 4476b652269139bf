"""The picture of ownership: the owners of partitions over time, and times without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Final

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from kip848_client.history.core import Tenure
from kip848_client.history.report._style import (
    GREY,
    MEMBERS,
    QUIET,
    RED,
    SHADES,
    WIDTH_IN,
    bare,
    figure,
    message,
    seconds,
    time_axis,
)
from kip848_client.history.report._views import GroupView, short

__all__ = ["ownership_picture"]

_ROW_IN: Final = 0.27
_ROWS_WITH_NAMES: Final = 36
_MANY_ROWS_IN: Final = 7.0
_TOPICS_WITH_NAMES: Final = 30
_RECTANGLES: Final = 1_500
"""More bars than this are drawn as pixels: as shapes, the page would have megabytes."""
_THICK: Final = 0.84
_LINE: Final = 100
_CHARACTER_IN: Final = 0.075
_PIXEL: Final = 1 / 900
"""The least width of a bar, as a fraction of the whole time."""

_Rows = Mapping[tuple[str, int], int]
Rectangle = tuple[tuple[float, float], ...]


def ownership_picture(view: GroupView) -> Figure:
    """Top: how many partitions had no owner, and how many members there were; below: one row per
    partition."""
    if not view.tenures:
        return message("No member owned a partition in these events.")
    rows = {
        (row.topic, row.partition): number for number, row in enumerate(view.partition_downtime)
    }
    height_in = len(rows) * _ROW_IN if len(rows) <= _ROWS_WITH_NAMES else _MANY_ROWS_IN
    height_in = max(height_in, 0.6)
    drawn = figure(height_in + 2.7)
    unowned, members, timeline = drawn.subplots(
        3, 1, sharex=True, gridspec_kw={"height_ratios": [0.75, 0.75, height_in]}
    )
    _steps(unowned, view, [(g.start_ms, g.end_ms) for g in view.gaps], RED)
    unowned.set_title("Partitions without an owner")
    _steps(members, view, _lives(view.tenures), SHADES[0])
    members.set_title("Members that own partitions")
    _timeline(timeline, view, rows, height_in)
    for axes in (unowned, members):
        axes.tick_params(labelbottom=False)
    time_axis(timeline, view)
    return drawn


def _lives(tenures: Iterable[Tenure]) -> list[tuple[int, int]]:
    """The times in which each member owned partitions."""
    found: dict[str, list[tuple[int, int]]] = {}
    for each in tenures:
        found.setdefault(each.member_id, []).append((each.start_ms, each.end_ms))
    lives: list[tuple[int, int]] = []
    for times in found.values():
        start_ms, end_ms = min(times)
        for begin_ms, until_ms in sorted(times):
            if begin_ms > end_ms:
                lives.append((start_ms, end_ms))
                start_ms = begin_ms
            end_ms = max(end_ms, until_ms)
        lives.append((start_ms, end_ms))
    return lives


def _steps(axes: Axes, view: GroupView, times: Sequence[tuple[int, int]], color: str) -> None:
    """How many of these times overlap, over time."""
    changes: Counter[int] = Counter()
    for start_ms, end_ms in times:
        changes[start_ms] += 1
        changes[end_ms] -= 1
    at = [view.start_ms, *sorted(changes), view.end_ms]
    counts = [0, *accumulate(changes[each] for each in sorted(changes)), 0]
    where = [seconds(view, each) for each in at]
    axes.fill_between(where, counts, step="post", color=color, alpha=0.85, linewidth=0.6)
    most = max(counts)
    axes.set_ylim(0, max(most, 1) * 1.1)
    axes.set_yticks([0, most] if most else [0])
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)


def _timeline(axes: Axes, view: GroupView, rows: _Rows, height_in: float) -> None:
    named = len(rows) <= _ROWS_WITH_NAMES
    colors = _colors(view)
    by_color: dict[str, list[Rectangle]] = {}
    for each in view.tenures:
        y = rows[each.topic, each.partition]
        times = seconds(view, each.start_ms), seconds(view, each.end_ms)
        thick = _THICK if named else 1.0
        by_color.setdefault(colors[each.member_id], []).append(_rectangle(*times, y, thick))
    few = len(view.tenures) + len(view.gaps) <= _RECTANGLES
    for color, shapes in by_color.items():
        edge = "white" if named else "none"
        axes.add_collection(
            PolyCollection(
                shapes, facecolors=color, edgecolors=edge, linewidths=0.8, rasterized=not few
            )
        )
    _draw_gaps(axes, view, rows, named=named, few=few)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title("Who owned what")
    bare(axes)
    if named:
        labels = [f"{short(topic)}-{partition}" for topic, partition in rows]
        axes.set_yticks(range(len(rows)), labels)
        _write_names(axes, view, rows)
    else:
        _name_topics(axes, rows)
    _legend(axes, view, colors, height_in)


def _rectangle(start_s: float, end_s: float, y: float, thick: float) -> Rectangle:
    low, high = y - thick / 2, y + thick / 2
    return ((start_s, low), (end_s, low), (end_s, high), (start_s, high))


def _draw_gaps(axes: Axes, view: GroupView, rows: _Rows, *, named: bool, few: bool) -> None:
    """Draw gaps thinner than owned times, so that they are visible without colour, too."""
    least_s = seconds(view, view.end_ms) * _PIXEL
    shapes: list[Rectangle] = []
    for gap in view.gaps:
        start_s, end_s = seconds(view, gap.start_ms), seconds(view, gap.end_ms)
        end_s = max(end_s, start_s + least_s)
        thick = 0.3 if named else 1.0
        shapes.append(_rectangle(start_s, end_s, rows[gap.topic, gap.partition], thick))
    axes.add_collection(
        PolyCollection(shapes, facecolors=RED, edgecolors="none", zorder=3, rasterized=not few)
    )


def _write_names(axes: Axes, view: GroupView, rows: _Rows) -> None:
    """Write the name of the member into each bar that is long enough."""
    span_s = max(seconds(view, view.end_ms), 0.001)
    for each in view.tenures:
        name = view.names.get(each.member_id, each.member_id)
        start_s, end_s = seconds(view, each.start_ms), seconds(view, each.end_ms)
        room = int((end_s - start_s) / span_s * WIDTH_IN * 0.85 / _CHARACTER_IN) - 1
        if room >= min(len(name), 6):
            axes.text(
                (start_s + end_s) / 2,
                rows[each.topic, each.partition],
                short(name, room),
                ha="center",
                va="center_baseline",
                size=7.5,
                clip_on=True,
            )


def _name_topics(axes: Axes, rows: _Rows) -> None:
    """A topic has a block of rows: its name, how many partitions, and a line below."""
    blocks: list[tuple[str, int, int]] = []
    for topic, group in groupby(rows, key=lambda each: each[0]):
        numbers = [rows[each] for each in group]
        blocks.append((topic, numbers[0], numbers[-1]))
    every = -(-len(blocks) // _TOPICS_WITH_NAMES)
    shown = blocks[::every]
    axes.set_yticks(
        [(first + last) / 2 for _, first, last in shown],
        [
            f"{short(topic)}\n0 to {last - first}"
            if every == 1 and last - first > 15
            else short(topic)
            for topic, first, last in shown
        ],
    )
    if len(blocks) <= _TOPICS_WITH_NAMES:
        for _, first, _ in blocks[1:]:
            axes.axhline(first - 0.5, color="white", linewidth=2)


def _colors(view: GroupView) -> dict[str, str]:
    """One colour per member. If there are too few colours, a member's colour differs from those of
    the members with which it exchanges partitions."""
    members = list(view.names)
    if len(members) <= len(MEMBERS):
        return dict(zip(members, MEMBERS, strict=False))
    neighbours: dict[str, Counter[str]] = {each: Counter() for each in members}
    for one, other in pairwise(view.tenures):
        if one[:3] == other[:3] and one.member_id != other.member_id:
            neighbours[one.member_id][other.member_id] += 1
            neighbours[other.member_id][one.member_id] += 1
    colors: dict[str, str] = {}
    for number, member in enumerate(members):
        taken: Counter[str] = Counter()
        for neighbour, times in neighbours[member].items():
            if neighbour in colors:
                taken[colors[neighbour]] += times
        turn = SHADES[number % len(SHADES) :] + SHADES[: number % len(SHADES)]
        colors[member] = min(turn, key=lambda shade: taken[shade])
    return colors


def _fits(handles: Sequence[Patch]) -> bool:
    """Whether the legend is one line beside the title."""
    return sum(len(str(each.get_label())) + 6 for each in handles) < _LINE


def _legend(axes: Axes, view: GroupView, colors: Mapping[str, str], height_in: float) -> None:
    handles = [Patch(color=RED, label="no owner")] if view.gaps else []
    if len(view.names) <= len(MEMBERS):
        owners = {tenure.member_id for tenure in view.tenures}
        handles = [
            *(
                Patch(color=color, label=view.names[member])
                for member, color in colors.items()
                if member in owners
            ),
            *handles,
        ]
    else:
        handles = [
            Patch(color=SHADES[0], label="owned: a change of shade is a hand-over"),
            *handles,
        ]
    axes.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1.0 + 0.02 / height_in),
        ncols=len(handles) if _fits(handles) else 3,
        frameon=False,
        borderaxespad=0,
        labelcolor=GREY,
        handlelength=1,
        handleheight=1,
        edgecolor=QUIET,
    )
