"""aiokafka's classes, from which those of ``kip848_client.aiokafka`` derive.

They are imported from the modules that define them, so they are aiokafka's own even while
``kip848_client.aiokafka.install`` has replaced the public names.
"""

from __future__ import annotations

import aiokafka as package
from aiokafka import abc, consumer, errors, producer, structs
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.consumer.consumer import AIOKafkaConsumer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.producer.producer import AIOKafkaProducer
from aiokafka.producer.transaction_manager import TransactionState as TheirTransactionState
from aiokafka.util import commit_structure_validate

__all__ = [
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "BatchBuilder",
    "ConnectionGroup",
    "TheirTransactionState",
    "abc",
    "commit_structure_validate",
    "consumer",
    "errors",
    "package",
    "producer",
    "structs",
]
