"""The embedded protocols of Kafka Connect: by which names workers offer what they say, and in which
version it is written (``connect.protocol``, KIP-415, KIP-507)."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["PROTOCOL_TYPE", "ConnectProtocol", "RebalanceReason"]

PROTOCOL_TYPE: Final = "connect"
"""The protocol type of a worker's JoinGroup."""


class ConnectProtocol(enum.IntEnum):
    """A version of the embedded protocol; the number is the one in front of all its bytes."""

    EAGER = 0
    COMPATIBLE = 1
    SESSIONED = 2
    """As ``COMPATIBLE``; requests between workers are signed, too."""

    @property
    def group_protocol(self) -> str:
        """Its name in JoinGroup."""
        return "default" if self is ConnectProtocol.EAGER else self.name.lower()

    @property
    def is_incremental(self) -> bool:
        """Whether the incremental cooperative assignor computes."""
        return self is not ConnectProtocol.EAGER

    @property
    def offered(self) -> tuple[ConnectProtocol, ...]:
        """What a worker in this mode offers, the preferred one first."""
        return tuple(ConnectProtocol(version) for version in range(self, -1, -1))

    @classmethod
    def of_group_protocol(cls, name: str) -> ConnectProtocol:
        """The one that a group has agreed on. Raises ``ValueError`` for a name of none."""
        for each in cls:
            if each.group_protocol == name:
                return each
        known = ", ".join(each.group_protocol for each in cls)
        raise ValueError(f"{name!r} is no embedded protocol of Kafka Connect; those are {known}")


class RebalanceReason(enum.IntEnum):
    """Why a worker asks its group for a new assignment: ``AssignorMetadata.reason``. Those of your
    own begin at 64."""

    NONE = 0
    SCHEDULED_REBALANCE = 1
    """The delay of the last assignment is over."""
    CONFIGURATION_CHANGED = 2
    """Connectors or tasks have come or gone."""
    RETRY = 3
    """The last assignment was an error."""
    WORKER_CHANGED = 4
    """Another policy or capacity of this worker."""
