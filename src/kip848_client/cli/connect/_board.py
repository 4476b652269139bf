"""The workers as text: a table, a line for each, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kip848_client.cli.connect._tally import Verdict

__all__ = ["Row", "footer", "table", "verdict_text"]


@dataclass(frozen=True, slots=True)
class Row:
    """One worker as shown. ``generation`` is its member epoch, ``None`` outside the group."""

    name: str
    state: str
    generation: int | None
    items: tuple[str, ...]

    def plain(self) -> str:
        """``W1 STABLE generation 4 runs orders, orders-0``."""
        generation = "-" if self.generation is None else str(self.generation)
        runs = ", ".join(self.items) or "nothing"
        return f"{self.name} {self.state} generation {generation} runs {runs}"


def table(rows: Sequence[Row], below: str, news: Sequence[str]) -> list[str]:
    """The lines of the live table."""
    lines = [f"{'worker':<8}{'state':<16}{'generation':>10}  runs"]
    lines.append("-" * 78)
    for row in rows:
        generation = "-" if row.generation is None else str(row.generation)
        runs = " ".join(row.items) or "."
        lines.append(f"{row.name:<8}{row.state:<16}{generation:>10}  {runs}")
    return [*lines, "", below, "", *(f"  {line}" for line in news)]


def footer(at_s: float, nowhere: Sequence[str], left_s: float) -> str:
    """What rests, and for how long it is kept for a worker that may return."""
    if not nowhere:
        return f"{at_s:4.1f} s   everything runs"
    what = "deferred" if left_s > 0 else "at rest"
    until = f", for {left_s:.1f} s more" if left_s > 0 else ""
    return f"{at_s:4.1f} s   {what}{until}: {' '.join(nowhere)}"


def verdict_text(verdict: Verdict) -> str:
    """The last lines: what the books say."""
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
    return f"{summary}\n{rest}\n{outcome}"
