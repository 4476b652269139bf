"""kip848_client: a native async client for Kafka's KIP-848 consumer groups.

The names below are public. Names that need aiokafka or pydantic are imported at first use, so that
importing the package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kip848_client._version import __version__
from kip848_client.core.lazy import lazy_names
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    AdminFailed,
    BatchUnreadable,
    BootstrapFailed,
    BrokerError,
    CallbackError,
    CommitFailed,
    CommitInDoubt,
    ConfigError,
    ConsumerClosed,
    ConsumerNotStarted,
    CoordinatorUnavailable,
    DeliveryTimedOut,
    Kip848Error,
    LocalProtocolError,
    LogTruncated,
    NoOffsetForPartition,
    NotAssigned,
    OffsetOutOfRange,
    ProducerFailed,
    ProducerFenced,
    ProtocolUnsupported,
    RecordTooLarge,
    RecordUnreadable,
    RequestTimedOut,
    SchemaUnavailable,
    TopicGone,
    TransactionAborted,
    TransactionTimedOut,
    TransportError,
)

if TYPE_CHECKING:
    from kip848_client.admin import Admin
    from kip848_client.config import ConsumerConfig, ProducerConfig
    from kip848_client.connect import Worker
    from kip848_client.consumer import (
        Consumer,
        EventStream,
        GroupMetadata,
        MemberView,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        RebalanceListener,
        Record,
        RecordBatchView,
    )
    from kip848_client.core.member import LeaveMode, MemberState
    from kip848_client.observe.core.metrics import Metrics
    from kip848_client.observe.core.watching import ConsumerHealth, MembershipEvent
    from kip848_client.processor._processor import ExactlyOnceProcessor, ProducerRecord
    from kip848_client.producer import Producer, RecordMetadata, Transaction

__all__ = [
    "Admin",
    "AdminFailed",
    "BatchUnreadable",
    "BootstrapFailed",
    "BrokerError",
    "CallbackError",
    "CommitFailed",
    "CommitInDoubt",
    "ConfigError",
    "Consumer",
    "ConsumerClosed",
    "ConsumerConfig",
    "ConsumerHealth",
    "ConsumerNotStarted",
    "CoordinatorUnavailable",
    "DeliveryTimedOut",
    "EventStream",
    "ExactlyOnceProcessor",
    "GroupMetadata",
    "Kip848Error",
    "LeaveMode",
    "LocalProtocolError",
    "LogTruncated",
    "MemberState",
    "MemberView",
    "MembershipEvent",
    "Metrics",
    "NoOffsetForPartition",
    "NotAssigned",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "Producer",
    "ProducerConfig",
    "ProducerFailed",
    "ProducerFenced",
    "ProducerRecord",
    "ProtocolUnsupported",
    "RebalanceListener",
    "Record",
    "RecordBatchView",
    "RecordMetadata",
    "RecordTooLarge",
    "RecordUnreadable",
    "RequestTimedOut",
    "SchemaUnavailable",
    "TopicGone",
    "TopicPartition",
    "Transaction",
    "TransactionAborted",
    "TransactionTimedOut",
    "TransportError",
    "Worker",
    "__version__",
]

_LAZY: Final = {
    "Admin": "kip848_client.admin",
    "Consumer": "kip848_client.consumer",
    "ConsumerConfig": "kip848_client.config",
    "ConsumerHealth": "kip848_client.observe.core.watching",
    "EventStream": "kip848_client.consumer",
    "ExactlyOnceProcessor": "kip848_client.processor._processor",
    "GroupMetadata": "kip848_client.consumer",
    "LeaveMode": "kip848_client.core.member",
    "MemberState": "kip848_client.core.member",
    "MemberView": "kip848_client.consumer",
    "MembershipEvent": "kip848_client.observe.core.watching",
    "Metrics": "kip848_client.observe.core.metrics",
    "OffsetAndMetadata": "kip848_client.consumer",
    "OffsetAndTimestamp": "kip848_client.consumer",
    "RebalanceListener": "kip848_client.consumer",
    "Producer": "kip848_client.producer",
    "ProducerConfig": "kip848_client.config",
    "ProducerRecord": "kip848_client.processor._processor",
    "Record": "kip848_client.consumer",
    "RecordBatchView": "kip848_client.consumer",
    "RecordMetadata": "kip848_client.producer",
    "Transaction": "kip848_client.producer",
    "Worker": "kip848_client.connect",
}


__getattr__ = lazy_names(__name__, _LAZY)


def __dir__() -> list[str]:
    return sorted(__all__)
