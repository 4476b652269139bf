"""The style of all pictures: few colours that are easy to distinguish, a time axis."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final, cast

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kip848_client.history.report._views import GroupView, clock_text, duration_text

__all__ = [
    "BLUE",
    "GREY",
    "INK",
    "MEMBERS",
    "QUIET",
    "RED",
    "SHADES",
    "WIDTH_IN",
    "bare",
    "figure",
    "message",
    "styled",
    "time_axis",
]

INK: Final = "#24292f"
GREY: Final = "#6e7781"
QUIET: Final = "#d8dee4"
BLUE: Final = "#33658a"
RED: Final = "#c1121f"
"""Only for problems."""
MEMBERS: Final = ("#77aadd", "#eedd88", "#44bb99", "#bbcc33", "#aaaaee", "#dddddd")
"""Light, so that names in them are readable; distinct for colour-blind people, too."""
SHADES: Final = ("#77aadd", "#b8d4ee", "#4f86b5", "#dbe9f6", "#94bfe3")
"""For more members than colours: a change of shade is a hand-over."""
WIDTH_IN: Final = 11.0

_STYLE: Final[dict[str, Any]] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": GREY,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": GREY,
    "ytick.labelcolor": INK,
    "grid.color": "#eaeef2",
    "grid.linewidth": 0.8,
    "svg.fonttype": "path",
    "svg.hashsalt": "kip848",
    "text.color": INK,
    "text.parse_math": False,
    "figure.dpi": 110,
    "savefig.facecolor": "white",
}
_STEPS_S: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800),
)
_TICKS: Final = 10


@contextmanager
def styled() -> Generator[None]:
    """Use the same settings of matplotlib for all pictures, whatever the user has set."""
    with mpl.rc_context():
        mpl.rcdefaults()
        for name, value in _STYLE.items():
            mpl.rcParams[cast("Any", name)] = value
        yield


def figure(height_in: float) -> Figure:
    """An empty picture, without a window or global state."""
    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def message(text: str) -> Figure:
    """A picture with only a text, when there is nothing to draw."""
    empty = figure(1.4)
    empty.text(0.5, 0.5, text, ha="center", va="center", color=GREY, size=11)
    return empty


def bare(axes: Axes) -> None:
    """Remove the frame; keep the labels."""
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)


def seconds(view: GroupView, time_ms: int) -> float:
    """The position of a time on the axis."""
    return (time_ms - view.start_ms) / 1_000


def time_axis(axes: Axes, view: GroupView, *, label: bool = True) -> None:
    """Ticks at round times, of day if the times are real."""
    span_s = max(seconds(view, view.end_ms), 0.001)
    axes.set_xlim(-0.01 * span_s, 1.01 * span_s)
    step_s = next((each for each in _STEPS_S if span_s / each <= _TICKS), None)
    step_s = step_s or _STEPS_S[-1] * math.ceil(span_s / _STEPS_S[-1] / _TICKS)
    begin_s = view.start_ms / 1_000 if view.is_real else 0.0
    first = math.ceil(begin_s / step_s - 1e-9)
    ticks = [first * step_s + i * step_s - begin_s for i in range(_TICKS + 2)]
    ticks = [each for each in ticks if each <= span_s]
    axes.set_xticks(ticks, [_tick(view, each, step_s) for each in ticks])
    if label:
        axes.set_xlabel(_label(view))


def _tick(view: GroupView, at_s: float, step_s: float) -> str:
    at_ms = round(at_s * 1_000)
    if not view.is_real:
        return duration_text(at_ms) if at_ms else "0"
    time_ms = view.start_ms + at_ms
    if step_s < 1:
        return f"{clock_text(time_ms)}.{time_ms % 1_000:03d}"
    if step_s >= 86_400:
        return _date(time_ms)[5:]
    return clock_text(time_ms) if step_s < 60 else clock_text(time_ms)[:5]


def _label(view: GroupView) -> str:
    if not view.is_real:
        return "time since the begin"
    first, last = _date(view.start_ms), _date(view.end_ms)
    return f"time (UTC), {first}" if first == last else f"time (UTC), {first} to {last}"


def _date(time_ms: int) -> str:
    try:
        return datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):  # outside the calendar
        return ""
