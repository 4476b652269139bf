"""The codecs of Kafka's record batches: gzip, snappy, lz4 and zstd, with a limit on the unpacked
size.

The client and the bundled broker both read with this package, and the client writes with it. A few
bytes can unpack to gigabytes, so no function here allocates more than its limit allows:

::

    data = unpack_small(number, payload, limit_bytes)   # None: too large to unpack in an event loop
    data, is_whole = unpack(number, payload, limit_bytes)
    payload = pack(number, data)

It reads what Kafka's Java consumer reads; each codec's module lists the accepted forms.
"""

from __future__ import annotations

from kip848_client.core.compression._model import (
    CODEC_MASK,
    NAMES,
    SMALL_BYTES,
    CorruptPayload,
    UnknownCodec,
    Unpacked,
)
from kip848_client.core.compression._packing import pack, unpack, unpack_small

__all__ = [
    "CODEC_MASK",
    "NAMES",
    "SMALL_BYTES",
    "CorruptPayload",
    "UnknownCodec",
    "Unpacked",
    "pack",
    "unpack",
    "unpack_small",
]
