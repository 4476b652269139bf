"""Control batches: the markers that end a transaction in a partition (KIP-98).

A marker is a batch with a single record. Its key is commit or abort, its value has the epoch of the
transaction coordinator; the producer's id and epoch are in the header. It takes an offset, and
consumers never show it.
"""

from __future__ import annotations

import struct
from typing import Final

import crc32c

__all__ = ["end_transaction_marker", "marker_commits", "read_marker"]

_TRANSACTIONAL_CONTROL: Final = 0x30
_HEAD: Final = struct.Struct(">qiibI")
_BODY: Final = struct.Struct(">hiqqqhii")
_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_HEAD_AFTER_LENGTH: Final = 9
_NO_SEQUENCE: Final = -1


def end_transaction_marker(
    now_ms: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, *, committed: bool
) -> bytes:
    """The batch that ends a producer's transaction, as it is appended (base offset 0)."""
    key = _KEY.pack(0, int(committed))
    value = _VALUE.pack(0, coordinator_epoch)
    # attributes, timestamp delta and offset delta are 0; lengths are zigzag numbers below 64
    record = bytes((0, 0, 0, len(key) << 1)) + key + bytes((len(value) << 1,)) + value + b"\0"
    body = _BODY.pack(
        _TRANSACTIONAL_CONTROL, 0, now_ms, now_ms, producer_id, producer_epoch, _NO_SEQUENCE, 1
    )
    body += bytes((len(record) << 1,)) + record
    return _HEAD.pack(0, _HEAD_AFTER_LENGTH + len(body), -1, 2, crc32c.crc32c(body)) + body


def marker_commits(key: bytes) -> bool:
    """Whether the record key of a marker says commit. Raises ``ValueError`` for other keys."""
    try:
        version, kind = _KEY.unpack_from(key)
    except struct.error as err:
        raise ValueError("a control record with a short key") from err
    if version < 0 or kind not in (0, 1):
        raise ValueError(f"not a transaction marker: version {version}, type {kind}")
    return bool(kind)


def read_marker(key: bytes, value: bytes) -> tuple[bool, int]:
    """Whether a marker says commit, and the epoch of the coordinator that wrote it. Raises
    ``ValueError`` for any other record."""
    try:
        _, epoch = _VALUE.unpack_from(value)
    except struct.error as err:
        raise ValueError("a marker with a short value") from err
    return marker_commits(key), epoch
