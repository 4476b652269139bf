"""What members of a classic consumer group put into JoinGroup and SyncGroup: Kafka's
ConsumerProtocolSubscription and ConsumerProtocolAssignment, written by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

__all__ = ["assigned", "assignment", "subscription"]


def subscription(
    version: int,
    topics: Iterable[str],
    *,
    user_data: bytes | None = None,
    owned: Mapping[str, Iterable[int]] | None = None,
    generation: int = -1,
    rack: str | None = None,
) -> bytes:
    """A subscription in version 0 to 3; what the version cannot say is left out."""
    names = list(topics)
    out = struct.pack(">hi", version, len(names)) + b"".join(map(_string, names))
    out += _data(user_data)
    if version >= 1:
        out += _partitions(owned or {})
    if version >= 2:
        out += struct.pack(">i", generation)
    if version >= 3:
        out += struct.pack(">h", -1) if rack is None else _string(rack)
    return out


def assignment(
    version: int, partitions: Mapping[str, Iterable[int]], *, user_data: bytes | None = None
) -> bytes:
    """An assignment in version 0 to 3, which do not differ."""
    return struct.pack(">h", version) + _partitions(partitions) + _data(user_data)


def assigned(data: bytes) -> dict[str, list[int]]:
    """The partitions in an assignment; none if it is not one."""
    found: dict[str, list[int]] = {}
    try:
        (count,) = struct.unpack_from(">i", data, 2)
        position = 6
        for _ in range(count):
            (length,) = struct.unpack_from(">h", data, position)
            name = data[position + 2 : position + 2 + length].decode()
            position += 2 + length
            (size,) = struct.unpack_from(">i", data, position)
            found[name] = list(struct.unpack_from(f">{size}i", data, position + 4))
            position += 4 + 4 * size
    except (struct.error, UnicodeDecodeError):
        return {}
    return found


def _partitions(partitions: Mapping[str, Iterable[int]]) -> bytes:
    out = struct.pack(">i", len(partitions))
    for name, numbers in partitions.items():
        chosen = list(numbers)
        out += _string(name) + struct.pack(f">i{len(chosen)}i", len(chosen), *chosen)
    return out


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _data(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
