"""Draws the demo: a table redrawn in place on a terminal, plain lines anywhere else.

Pure text in, pure text out; only ``Screen`` writes. The plain form prints what changed and nothing
else, so that a log of it reads as a story.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from kip848_client.cli.demo._tally import Verdict

__all__ = ["Row", "Screen", "verdict_text"]


@dataclass(frozen=True, slots=True)
class Row:
    """One member as shown. ``epoch`` is its member epoch, ``None`` outside the group."""

    name: str
    state: str
    epoch: int | None
    partitions: tuple[int, ...]
    consumed: int

    def plain(self) -> str:
        """``B STABLE epoch 4 owns 3,4``."""
        epoch = "-" if self.epoch is None else str(self.epoch)
        owned = ",".join(map(str, self.partitions)) or "nothing"
        return f"{self.name} {self.state} epoch {epoch} owns {owned}"


def table(rows: Sequence[Row], footer: str, news: Sequence[str]) -> list[str]:
    """The lines of the live table."""
    lines = [f"{'member':<8}{'state':<16}{'epoch':>6}  {'partitions':<22}{'records':>9}"]
    lines.append("-" * len(lines[0]))
    for row in rows:
        epoch = "-" if row.epoch is None else str(row.epoch)
        owned = " ".join(map(str, row.partitions)) or "."
        lines.append(f"{row.name:<8}{row.state:<16}{epoch:>6}  {owned:<22}{row.consumed:>9}")
    return [*lines, "", footer, "", *(f"  {line}" for line in news)]


def verdict_text(verdict: Verdict) -> str:
    """The last lines: what the books say."""
    pauses = "  ".join(f"{number}: {ms} ms" for number, ms in sorted(verdict.pause_ms.items()))
    summary = (
        f"produced {verdict.produced}  consumed {verdict.consumed}  "
        f"lost {verdict.lost}  duplicated {verdict.duplicated}"
    )
    outcome = "ok: every record arrived" if verdict.good else "FAILED: records were lost"
    return f"{summary}\nlongest pause per partition  {pauses}\n{outcome}"


class Screen:
    """Where the demo is shown: ``news`` is what happened, ``draw`` the state of affairs."""

    def __init__(self, out: TextIO, *, live: bool) -> None:
        self._out = out
        self._live = live
        self._height = 0
        self._news: list[str] = []
        self._shown: dict[str, str] = {}

    def news(self, at_s: float, text: str) -> None:
        """Something happened at this second of the demo."""
        line = f"{at_s:5.1f} s  {text}"
        self._news = [*self._news[-5:], line]
        if not self._live:
            self._out.write(line + "\n")
            self._out.flush()

    def draw(self, at_s: float, rows: Sequence[Row], footer: str) -> None:
        """Show the members: in place on a terminal, else only what changed since the last time."""
        if self._live:
            lines = table(rows, footer, self._news)
            up = f"\x1b[{self._height}F" if self._height else ""
            body = "".join(f"\x1b[2K{line}\n" for line in lines)
            self._out.write(f"{up}{body}\x1b[J")
            self._height = len(lines)
        else:
            for row in rows:
                text = row.plain()
                if self._shown.get(row.name) != text:
                    self._shown[row.name] = text
                    self._out.write(f"{at_s:5.1f} s    {text}\n")
        self._out.flush()

    def close(self, text: str) -> None:
        """Print the closing lines below everything."""
        self._out.write(f"\n{text}\n")
        self._out.flush()
