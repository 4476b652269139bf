"""The picture of heartbeats: how soon they were answered, and long silences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kip848_client.history.report._style import (
    BLUE,
    GREY,
    INK,
    RED,
    SHADES,
    figure,
    message,
    seconds,
    time_axis,
)
from kip848_client.history.report._views import GroupView, duration_text

__all__ = ["heartbeats_picture"]

_DOTS: Final = 1_500
_BINS: Final = 60
_SILENT: Final = 10


def heartbeats_picture(view: GroupView) -> Figure:
    """Left: one dot per heartbeat; right: the longest silences."""
    rows = view.heartbeat_sla
    if not rows:
        return message("No heartbeat in these events.")
    drawn = figure(3.2)
    left, right = drawn.subplots(1, 2, gridspec_kw={"width_ratios": [2.3, 1]})
    _latencies(left, view)
    _silences(right, view)
    return drawn


def _latencies(axes: Axes, view: GroupView) -> None:
    measured = {row.member_id for row in view.heartbeat_sla if row.p50_ms is not None}
    dots: list[tuple[float, float]] = []
    wrong: dict[str, list[float]] = {}
    for event in view.events:
        if event.member_id not in measured or not event.is_members:
            continue
        x = seconds(view, event.time_ms)
        if event.kind == "heartbeat" and event.duration_ms is not None:
            dots.append((x, max(event.duration_ms, 0.5)))
        elif event.kind in ("heartbeat_lost", "heartbeat_refused"):
            wrong.setdefault(event.kind, []).append(x)
    time_axis(axes, view)
    axes.set_title("How soon heartbeats were answered")
    if not dots:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not measured", transform=axes.transAxes, ha="center", color=GREY)
        return
    many = len(dots) > _DOTS
    axes.plot(
        *zip(*dots, strict=True),
        linestyle="none",
        marker="o",
        markersize=2.2 if many else 4,
        color=BLUE,
        alpha=0.3 if many else 0.65,
        markeredgewidth=0,
        rasterized=many,
    )
    if many:
        _percentile_line(axes, view, dots)
    axes.set_yscale("log")
    high = max(view.sla_ms, *(y for _, y in dots))
    axes.set_ylim(min(1, *(y for _, y in dots)) * 0.8, high * 3)
    axes.yaxis.set_major_formatter(FuncFormatter(_latency_text))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda _, __: ""))
    axes.axhline(view.sla_ms, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        f"promised: {duration_text(view.sla_ms)}",
        (0.005, view.sla_ms),
        xycoords=("axes fraction", "data"),
        xytext=(0, 3),
        textcoords="offset points",
        color=GREY,
    )
    _mark_wrong(axes, wrong)
    axes.grid(axis="y")
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0, which="both")


def _latency_text(value: float, _position: int | None) -> str:
    return f"{value:g} ms" if value < 1_000 else f"{value / 1_000:g} s"


def _mark_wrong(axes: Axes, wrong: dict[str, list[float]]) -> None:
    for kind, marker in (("heartbeat_lost", "x"), ("heartbeat_refused", "v")):
        if kind in wrong:
            label = kind.removeprefix("heartbeat_")
            axes.plot(
                wrong[kind],
                [0.96] * len(wrong[kind]),
                marker,
                transform=axes.get_xaxis_transform(),
                color=RED,
                markersize=5,
                label=f"{label} ({len(wrong[kind]):,})",
            )
    if wrong:
        axes.legend(
            loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0.2
        )


def _percentile_line(axes: Axes, view: GroupView, dots: Sequence[tuple[float, float]]) -> None:
    """The line below which 99 of 100 dots are, if there are enough of them."""
    span_s = max(seconds(view, view.end_ms), 0.001)
    bins: dict[int, list[float]] = {}
    for x, y in dots:
        bins.setdefault(min(int(x / span_s * _BINS), _BINS - 1), []).append(y)
    where = [(number + 0.5) * span_s / _BINS for number in sorted(bins)]
    high = [sorted(bins[n])[-(-99 * len(bins[n]) // 100) - 1] for n in sorted(bins)]
    axes.plot(where, high, color=INK, linewidth=1.2)
    axes.annotate(
        "99 % are below",
        (where[-1], high[-1]),
        xytext=(-2, 6),
        textcoords="offset points",
        ha="right",
        color=INK,
    )


def _silences(axes: Axes, view: GroupView) -> None:
    rows = sorted(view.heartbeat_sla, key=lambda row: -row.longest_silence_ms)[:_SILENT]
    lengths = [row.longest_silence_ms / 1_000 for row in rows]
    names = [view.names.get(row.member_id, row.member_id) for row in rows]
    axes.barh(range(len(rows)), lengths, height=0.62, color=SHADES[0])
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(max(len(rows), 4) - 0.5, -0.6)
    axes.set_xlim(0, max(lengths) * 1.28 or 1)
    for number, row in enumerate(rows):
        axes.annotate(
            duration_text(row.longest_silence_ms),
            (lengths[number], number),
            xytext=(4, -0.5),
            textcoords="offset points",
            va="center",
            color=GREY,
        )
    more = len(view.heartbeat_sla) - len(rows)
    axes.set_title("Longest silence" + (f", first {_SILENT} of {_SILENT + more}" if more else ""))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xticks([])
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
