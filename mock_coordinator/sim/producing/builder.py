"""Batches as the mock writes them: the core's ``BatchBuilder`` without a compiler."""

from __future__ import annotations

from collections.abc import Sequence

from kip848_client.core.produce import Header, ProducerId
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch

__all__ = ["Builder"]

_BATCH_BYTES = 61
_RECORD_BYTES = 21
_TRANSACTIONAL = 0x10


class Builder:
    """One batch. Its records are bytes when they are asked for."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._records: list[NewRecord] = []
        self._is_sealed = False
        self.size_bytes = _BATCH_BYTES

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> bool:
        """Add a record; False when it does not fit any more. The first one always fits."""
        assert not self._is_sealed, "no record is appended to a batch that is on its way"
        size_bytes = _RECORD_BYTES + len(key or b"") + len(value or b"")
        if self._records and self.size_bytes + size_bytes > self._limit_bytes:
            return False
        self._records.append(NewRecord(value, key, timestamp_ms, headers))
        self.size_bytes += size_bytes
        return True

    @property
    def records(self) -> int:
        """How many are in it."""
        return len(self._records)

    def seal(self) -> None:
        """No more records."""
        self._is_sealed = True

    def bytes_for(self, producer: ProducerId, first_sequence: int, *, transactional: bool) -> bytes:
        """The batch for this producer."""
        return encode_batch(
            self._records,
            0,
            producer_id=producer.number,
            producer_epoch=producer.epoch,
            base_sequence=first_sequence,
            attributes=_TRANSACTIONAL if transactional else 0,
        )

    def split(self) -> Sequence[Builder]:
        """Two of half the records each, or itself for one record."""
        if self.records < 2:
            return (self,)
        half = (self.records + 1) // 2
        parts = (Builder(1 << 30), Builder(1 << 30))
        for row, each in enumerate(self._records):
            part = parts[row >= half]
            part.append(each.timestamp_ms or 0, each.key, each.value, each.headers)
        return parts
