"""The members as a table and as lines, and the final lines of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.cli.core._tables import Column, Fit, Table
from kip848_client.cli.demo.core._accounting import DeliveryVerdict

__all__ = ["Row", "table", "verdict_lines"]


_STATE_WIDTH: Final = 12
_RECORDS_WIDTH: Final = 7


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
        owned = ",".join(map(str, self.partitions)) or ("nothing" + self._why_nothing)
        return f"{self.name} {self.state} epoch {epoch} owns {owned}"

    def owned(self) -> str:
        """``0 1 2``, or why there are none."""
        return " ".join(map(str, self.partitions)) or ("none" + self._why_nothing)

    @property
    def _why_nothing(self) -> str:
        """A member gets a partition only after its current owner has given it up."""
        return "" if self.epoch is None else " yet: waiting for other members"


def table(rows: Sequence[Row]) -> Table:
    """The members, one line each."""
    columns = [
        Column("member"),
        Column("state", calm=_STATE_WIDTH),
        Column("epoch"),
        Column("records", calm=_RECORDS_WIDTH),
        Column("partitions", fit=Fit.FOLDED),
    ]
    cells = [(row.name, row.state, row.epoch, row.consumed, row.owned()) for row in rows]
    return Table(columns, cells)


def verdict_lines(verdict: DeliveryVerdict) -> list[str]:
    """The final lines."""
    pauses = "  ".join(f"{number}: {ms} ms" for number, ms in sorted(verdict.pause_ms.items()))
    summary = (
        f"produced {verdict.produced}  consumed {verdict.consumed}  "
        f"lost {verdict.lost}  duplicated {verdict.duplicated}"
    )
    why = (
        f"duplicated {verdict.duplicated}: a member was killed after it read these records and "
        "before it committed them, so another member read them again (at least once)"
    )
    outcome = "ok: every record arrived" if verdict.good else "FAILED: records were lost"
    return [
        summary,
        f"longest pause of each partition  {pauses}",
        *((why,) if verdict.duplicated else ()),
        outcome,
    ]
