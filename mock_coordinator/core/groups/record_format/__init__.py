"""The records of ``__consumer_offsets`` as bytes, equal to those of brokers of each release."""

from __future__ import annotations

from mock_coordinator.core.groups.record_format.codec import (
    RecordFormatError,
    decode_record,
    encode_record,
)

__all__ = ["RecordFormatError", "decode_record", "encode_record"]
