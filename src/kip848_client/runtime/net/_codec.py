"""aiokafka's compiled codec: the records of one batch."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch

from kip848_client.errors import Kip848Error
from kip848_client.runtime.net._errors import translated

__all__ = [
    "RawRecord",
    "corrupt",
    "decoded",
    "why_undecodable",
]

RawRecord = Any
"""A record from the codec: offset, timestamp, timestamp_type, key, value, headers, checksum."""


def decoded(batch: bytes) -> Iterator[RawRecord]:
    """The records of an uncompressed batch, one at a time. Damaged bytes raise any error."""
    # aiokafka's batch is its own iterator and restarts at each iter(); chain calls iter() once
    return chain(DefaultRecordBatch(batch))


def corrupt(why: str) -> Exception:
    """Build the error for damage that the codec does not detect."""
    error: Exception = CorruptRecordException(why)
    return error


def why_undecodable(error: Exception, where: str) -> Kip848Error:
    """Translate an error from reading damaged bytes."""
    return translated(error, where)
