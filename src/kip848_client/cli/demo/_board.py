"""The members as text: a table, and a line for each (``cli/_screen.py`` shows them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kip848_client.cli.demo._tally import Verdict

__all__ = ["Row", "table", "verdict_text"]


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
