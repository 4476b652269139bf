"""aiokafka's structs, unchanged, as used by the replaced consumer and producer."""

from __future__ import annotations

from typing import Any

from kip848_client.aiokafka._parents import structs as theirs

__all__ = [
    "ConsumerRecord",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RecordMetadata",
    "TopicPartition",
]

ConsumerRecord: Any = theirs.ConsumerRecord
OffsetAndMetadata: Any = theirs.OffsetAndMetadata
OffsetAndTimestamp: Any = theirs.OffsetAndTimestamp
RecordMetadata: Any = theirs.RecordMetadata
TopicPartition: Any = theirs.TopicPartition
