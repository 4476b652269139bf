"""The status of a pipeline. Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

__all__ = ["PipelineStatus", "Progress"]

_WINDOW_MS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """A pipeline at one moment.

    Attributes:
        state: ``starting``, ``running``, ``stopping``, ``stopped`` or ``failed``.
        ownership: ``shared`` for a member of a group, ``exclusive`` for all partitions.
        member_epoch: The member epoch; ``None`` without a membership.
    """

    state: Literal["starting", "running", "stopping", "stopped", "failed"]
    ownership: Literal["shared", "exclusive"]
    batches: int
    """Batches committed since the start."""
    last_batch: int | None
    """The number of the last batch that was committed since the start."""
    last_batch_ms: int | None
    """How long that batch took, in ms."""
    records: int
    """Records read since the start, in committed batches."""
    records_per_second: float
    """Average over the last ten seconds."""
    rows: int | None
    """Rows written since the start; ``None`` if the format does not report it."""
    bad: int | None
    """Records that could not be decoded, and were dropped or written as dead letters; ``None`` as
    above."""
    lag: int | None
    """Offsets that are not in a batch yet, in the partitions of the pipeline; ``None`` if not known
    (yet)."""
    partitions: int | None
    """The number of partitions of the pipeline."""
    leaving: int | None
    """How many of them go to other members after the current batch."""
    member_epoch: int | None

    def to_json(self) -> dict[str, Any]:
        """Convert for ``json.dumps``. Raises nothing.

        Returns:
            The fields by name.
        """
        return asdict(self)


@dataclass(slots=True)
class Progress:
    """Counts the batches that are committed."""

    batches: int = 0
    records: int = 0
    last_batch: int | None = None
    last_batch_ms: int | None = None
    _ended: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])

    def ended(self, number: int, records: int, took_ms: int, now_ms: int) -> None:
        """Count a batch that Spark has committed."""
        self.batches += 1
        self.records += records
        self.last_batch, self.last_batch_ms = number, took_ms
        self._ended.append((now_ms, records))

    def rate(self, now_ms: int) -> float:
        """Records per second in the last ten seconds."""
        while self._ended and self._ended[0][0] <= now_ms - _WINDOW_MS:
            self._ended.popleft()
        return sum(records for _, records in self._ended) / (_WINDOW_MS / 1000)
