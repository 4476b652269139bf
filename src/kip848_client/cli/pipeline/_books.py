"""The books of the demo: what was produced, what is in Parquet, what another consumer had.

A record is known by its partition and offset, and has a number that its row must have, too.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kip848_client.core.extras import installation
from kip848_client.errors import ConfigError

__all__ = ["Books", "Place", "Verdict", "rows_in"]

Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The books, closed."""

    produced: int
    in_parquet: int
    consumed: int
    """By the other consumer."""
    lost: int
    duplicated: int
    changed: int
    """Rows with another record's number."""

    @property
    def is_good(self) -> bool:
        """Whether each record is there once, as it was."""
        return self.produced > 0 and not (self.lost or self.duplicated or self.changed)

    def __str__(self) -> str:
        how = "ok: each record is there once" if self.is_good else "FAILED"
        changed = f"  changed {self.changed:,}" if self.changed else ""
        return (
            f"rows produced {self.produced:,}  in Parquet {self.in_parquet:,}  "
            f"by the other consumer {self.consumed:,}  "
            f"lost {self.lost:,}  duplicated {self.duplicated:,}{changed}\n{how}"
        )


@dataclass(slots=True)
class Books:
    """What is known so far."""

    produced: dict[Place, int] = field(default_factory=dict[Place, int])
    """The number of each record that a broker has acknowledged."""
    consumed: list[Place] = field(default_factory=list[Place])

    def verdict(self, rows: Iterable[tuple[int, int, int]]) -> Verdict:
        """What the rows of the output (partition, offset, number) come to."""
        found: Counter[Place] = Counter()
        changed = 0
        for partition, offset, number in rows:
            found[partition, offset] += 1
            changed += self.produced.get((partition, offset)) != number
        in_parquet = found.total()
        found.update(self.consumed)
        return Verdict(
            produced=len(self.produced),
            in_parquet=in_parquet,
            consumed=len(self.consumed),
            lost=len(self.produced.keys() - found.keys()),
            duplicated=found.total() - len(found),
            changed=changed,
        )


def rows_in(folder: Path) -> list[tuple[int, int, int]]:
    """The rows of an output, read as whoever has no Spark does: partition, offset, number."""
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
