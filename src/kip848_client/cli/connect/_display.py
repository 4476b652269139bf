"""The workers as text: a table, a line for each, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.cli.connect.core._accounting import ItemVerdict
from kip848_client.cli.core._tables import Column, Fit, Table

__all__ = ["Row", "footer_line", "table", "verdict_lines"]


_STATE_WIDTH: Final = 12


@dataclass(frozen=True, slots=True)
class Row:
    """One worker as shown. ``epoch`` is its member epoch, ``None`` outside the group."""

    name: str
    state: str
    epoch: int | None
    items: tuple[str, ...]

    def plain(self) -> str:
        """``W1 STABLE generation 4 runs orders, orders-0``."""
        generation = "-" if self.epoch is None else str(self.epoch)
        runs = ", ".join(self.items) or "nothing"
        return f"{self.name} {self.state} generation {generation} runs {runs}"


def table(rows: Sequence[Row]) -> Table:
    """The workers, one line each, or as many as their items need."""
    columns = [
        Column("worker"),
        Column("state", calm=_STATE_WIDTH),
        Column("generation"),
        Column("runs", fit=Fit.FOLDED),
    ]
    cells = [(row.name, row.state, row.epoch, " ".join(row.items) or ".") for row in rows]
    return Table(columns, cells)


def footer_line(at_s: float, nowhere: Sequence[str], left_s: float) -> str:
    """The deferred items, and how long they are kept for a worker that may return."""
    if not nowhere:
        return f"{at_s:4.1f} s   everything runs"
    what = "deferred" if left_s > 0 else "at rest"
    until = f", for {left_s:.1f} s more" if left_s > 0 else ""
    return f"{at_s:4.1f} s   {what}{until}: {' '.join(nowhere)}"


def verdict_lines(verdict: ItemVerdict) -> list[str]:
    """The final lines."""
    summary = (
        f"configured {verdict.configured}  running once {verdict.running_once}  "
        f"ran twice {len(verdict.ran_twice)}  lost {len(verdict.lost)}  moves {verdict.moves}"
    )
    rest = f"longest rest of an item  {verdict.rest_s:.1f} s"
    wrong = [
        f"{what}: {' '.join(items)}"
        for what, items in (("ran twice", verdict.ran_twice), ("lost", verdict.lost))
        if items
    ]
    outcome = "ok: every item runs, at one worker, and none ever ran at two"
    if not verdict.good:
        outcome = "FAILED: " + ("; ".join(wrong) or "an item runs at two workers")
    return [summary, rest, outcome]
