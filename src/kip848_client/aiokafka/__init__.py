"""aiokafka's classes on KIP-848: change one import, and the program is migrated.

    from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer

They are subclasses of aiokafka's own: records are ``aiokafka.ConsumerRecord``s, errors aiokafka's,
and code that wraps aiokafka's methods (OpenTelemetry, ddtrace) still works. ``install()`` is for
frameworks that name aiokafka's classes themselves. docs/how-to/come-from-aiokafka.md has the rest.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.aiokafka._consumer import AIOKafkaConsumer
from kip848_client.aiokafka._install import Installation, install
from kip848_client.aiokafka._parents import abc
from kip848_client.aiokafka._parents import errors as _errors
from kip848_client.aiokafka._producer import AIOKafkaProducer
from kip848_client.aiokafka.structs import (
    ConsumerRecord,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    TopicPartition,
)

__all__ = [
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "ConsumerStoppedError",
    "IllegalOperation",
    "Installation",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "install",
]

ConsumerRebalanceListener: Final[Any] = abc.ConsumerRebalanceListener
ConsumerStoppedError: Final[Any] = _errors.ConsumerStoppedError
IllegalOperation: Final[Any] = _errors.IllegalOperation
