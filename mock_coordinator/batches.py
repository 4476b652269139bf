"""Record batches for tests: write one, and read the records of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kip848_client.errors import WireError
from kip848_client.records._header_names import header_name
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import read_header, records_of

__all__ = ["NewRecord", "StoredRecord", "encode_batch", "stored_records"]


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in a partition, as ``MockBroker.records`` returns it.

    Attributes:
        topic: The topic's name.
        partition: The partition's number.
        offset: The record's offset.
        timestamp_ms: Milliseconds since 1970.
        key: The key, or ``None``.
        value: The value; ``None`` for a tombstone.
        headers: Names and values.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def stored_records(topic: str, partition: int, log: PartitionLog) -> Iterator[StoredRecord]:
    """The records of a partition, oldest first, including those of aborted transactions but not
    their markers. Raises ``WireError`` for a batch that unpacks to more than 64 MB."""
    for batch in log.batches:
        header = read_header(batch.data)
        if header.is_control:
            continue
        records = records_of(header, batch.data)
        if records is None:
            raise WireError(
                f"{topic}-{partition} holds a batch at offset {batch.base_offset} that unpacks to "
                "more than 64 MB; read it with a consumer"
            )
        for record in records:
            at = header.max_timestamp
            if not header.is_log_append_time:
                at = header.base_timestamp + record.timestamp_delta
            offset = batch.base_offset + record.offset_delta
            yield StoredRecord(
                topic, partition, offset, at, record.key, record.value, _shown(record.headers)
            )


def _shown(
    headers: tuple[tuple[str, bytes | None], ...],
) -> tuple[tuple[str, bytes | None], ...]:
    """Header names as consumers read them. The broker stores invalid UTF-8 unchanged."""
    return tuple(
        (header_name(name.encode("utf-8", "surrogateescape")), content) for name, content in headers
    )
