"""How the batches of a topic are compressed, as a broker hands them out."""

from __future__ import annotations

import struct
from typing import Final

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from tests.support.wire_connection import WireConnection

__all__ = ["CODECS", "stored_codecs"]

CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""With their numbers in the attributes of a batch."""
_BYTES_MAX: Final = 1 << 24
_CODEC: Final = 7


def stored_codecs(bootstrap: str, topic: str, partitions: int) -> set[int]:
    """The numbers of the codecs in all batches of a topic."""
    wanted = tuple(
        FetchRequestFetchPartition(
            partition=each, fetch_offset=0, partition_max_bytes=_BYTES_MAX, log_start_offset=-1
        )
        for each in range(partitions)
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_BYTES_MAX,
        topics=(FetchRequestFetchTopic(topic=topic, partitions=wanted),),
    )
    host, port = bootstrap.split(":")
    with WireConnection(host, int(port)) as connection:
        [answer] = connection.request(request, 12).responses
    return {codec for each in answer.partitions for codec in _codecs_of(bytes(each.records or b""))}


def _codecs_of(batches: bytes) -> set[int]:
    found: set[int] = set()
    at = 0
    while at < len(batches):
        length, attributes = struct.unpack_from(">8xi9xh", batches, at)
        found.add(attributes & _CODEC)
        at += 12 + length
    return found
