"""What all handlers share: the state of one broker.

The part that a real broker keeps on disk (``disk``) survives a crash; the rest does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kip848_client._types import TopicId, format_topic_id
from mock_coordinator.core.catalog import Catalog
from mock_coordinator.core.config import BrokerConfig
from mock_coordinator.core.log import Logs
from mock_coordinator.core.profile import Profile

__all__ = ["NO_OPERATIONS", "Broker", "Disk"]

NO_OPERATIONS: Final = -2147483648
"""Authorized operations in a response that was not asked for them."""

_ATTEMPTS: Final = 1000


@dataclass(slots=True)
class Disk:
    """What survives a crash: configuration, topics, records, the cluster's id, producer ids."""

    config: BrokerConfig
    cluster_id: str
    catalog: Catalog = field(default_factory=Catalog)
    logs: Logs = field(init=False)
    next_producer_id: int = 0

    def __post_init__(self) -> None:
        self.logs = Logs()

    @classmethod
    def formatted(cls, config: BrokerConfig, new_uuid: Callable[[], bytes]) -> Disk:
        """An empty disk of a new cluster."""
        return cls(config, format_topic_id(new_uuid()))


@dataclass(slots=True)
class Broker:
    """The disk, where clients are told to connect, and the source of fresh 16-byte ids."""

    disk: Disk
    new_uuid: Callable[[], bytes]
    host: str = "127.0.0.1"
    port: int = 0

    @property
    def config(self) -> BrokerConfig:
        """The broker's settings."""
        return self.disk.config

    @property
    def profile(self) -> Profile:
        """Which Kafka this is."""
        return self.disk.config.profile

    @property
    def catalog(self) -> Catalog:
        """The topics."""
        return self.disk.catalog

    @property
    def logs(self) -> Logs:
        """The records."""
        return self.disk.logs

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.disk.config.node_id

    def new_topic_id(self) -> TopicId:
        """A topic id that no topic has and that is not one of Kafka's reserved ones.

        Kafka also avoids ids whose text begins with a dash, which command lines take for an option.
        """
        for _ in range(_ATTEMPTS):
            topic_id = TopicId(self.new_uuid())
            reserved = topic_id in (bytes(16), bytes(15) + b"\x01")
            taken = self.catalog.topic_by_id(topic_id) is not None
            if not reserved and not taken and not format_topic_id(topic_id).startswith("-"):
                return topic_id
        raise RuntimeError(f"new_uuid gave {_ATTEMPTS} ids that are taken or reserved")
