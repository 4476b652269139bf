"""Accounts for the demo's records: produced, in Parquet, and consumed by another consumer.

Each record has a number, which its row in Parquet must have, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kip848_client.cli._demo.core._accounting import RecordAccounting
from kip848_client.core.extras import installation
from kip848_client.errors import ConfigError

__all__ = ["Accounting", "Verdict", "rows_in"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome."""

    produced: int
    in_parquet: int
    consumed: int
    """Records consumed by the other consumer."""
    lost: int
    duplicated: int
    changed: int
    """Rows with another record's number."""

    @property
    def is_good(self) -> bool:
        """Whether each record is in one place, once and unchanged."""
        return self.produced > 0 and not (self.lost or self.duplicated or self.changed)

    def __str__(self) -> str:
        how = "ok: each record is there once" if self.is_good else "FAILED"
        changed = f"  changed {self.changed:,}" if self.changed else ""
        return (
            f"rows produced {self.produced:,}  in Parquet {self.in_parquet:,}  "
            f"by the other consumer {self.consumed:,}  "
            f"lost {self.lost:,}  duplicated {self.duplicated:,}{changed}\n{how}"
        )


class Accounting(RecordAccounting):
    """The produced records, and those that another consumer consumed (``delivered``)."""

    def verdict(self, rows: Iterable[tuple[int, int, int]]) -> Verdict:
        """The outcome for these rows of the output: partition, offset, number."""
        total = RecordAccounting(self.produced, self.delivered)
        changed = 0
        for partition, offset, number in rows:
            total.delivered[partition, offset] += 1
            changed += self.produced.get((partition, offset)) != number
        consumed = self.delivered.total()
        return Verdict(
            produced=len(self.produced),
            in_parquet=total.delivered.total() - consumed,
            consumed=consumed,
            lost=total.missing,
            duplicated=total.duplicated,
            changed=changed,
        )


def rows_in(folder: Path) -> list[tuple[int, int, int]]:
    """The rows of an output, read without Spark: partition, offset, number. Raises ``ConfigError``
    if pyarrow is missing."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as err:
        raise ConfigError(f"{err}: {installation('spark')}") from err
    found: list[tuple[int, int, int]] = []
    for file in sorted(folder.glob("batch_id=*/*.parquet")):
        table = parquet.ParquetFile(file).read(columns=["partition", "offset", "id"])
        columns = (table.column(name).to_pylist() for name in ("partition", "offset", "id"))
        found.extend(zip(*columns, strict=True))
    return found
