"""The picture of rebalances: how long they took."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from kip848_client.history.report._style import BLUE, GREY, figure, message, seconds, time_axis
from kip848_client.history.report._views import GroupView, duration_text

__all__ = ["rebalances_picture"]

_NAMED: Final = 3


def rebalances_picture(view: GroupView) -> Figure:
    """One line per rebalance, at its start, as high as its duration."""
    rows = view.rebalance_duration
    if not rows:
        return message("No rebalance in these events.")
    drawn = figure(2.5)
    axes = drawn.subplots()
    where = [seconds(view, row.began_ms) for row in rows]
    took = [row.duration_ms / 1_000 for row in rows]
    axes.vlines(where, 0, took, color=BLUE, linewidth=2 if len(rows) < 60 else 1)
    axes.plot(where, took, "o", color=BLUE, markersize=5 if len(rows) < 60 else 3, clip_on=False)
    most = max(took)
    time_axis(axes, view)
    axes.set_ylim(0, most * 1.25 or 1)
    span_s = max(seconds(view, view.end_ms), 0.001)
    written: list[float] = []
    for row in sorted(rows, key=lambda row: -row.duration_ms):
        x = seconds(view, row.began_ms)
        if len(written) == _NAMED or any(abs(x - each) < span_s / 6 for each in written):
            continue
        written.append(x)
        right = x > 0.85 * span_s
        axes.annotate(
            f"epoch {row.epoch}: {duration_text(row.duration_ms)}",
            (x, row.duration_ms / 1_000),
            xytext=(-6 if right else 6, 3),
            textcoords="offset points",
            ha="right" if right else "left",
            color=GREY,
        )
    axes.set_ylabel("seconds")
    axes.set_title("How long rebalances took, by when they began")
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    return drawn
