"""The embedded protocols of Kafka Connect: their names in JoinGroup and their versions
(``connect.protocol``, KIP-415, KIP-507)."""

from __future__ import annotations

import enum
from typing import Final

__all__ = ["PROTOCOL_TYPE", "ConnectProtocol", "RebalanceReason"]

PROTOCOL_TYPE: Final = "connect"
"""The protocol type of a worker's JoinGroup."""


class ConnectProtocol(enum.IntEnum):
    """A version of the embedded protocol. Its number is the first field of all its bytes."""

    EAGER = 0
    COMPATIBLE = 1
    SESSIONED = 2
    """Like ``COMPATIBLE``; requests between workers are signed as well."""

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
        """The protocols that a worker in this mode offers, the preferred one first."""
        return tuple(ConnectProtocol(version) for version in range(self, -1, -1))

    @classmethod
    def of_group_protocol(cls, name: str) -> ConnectProtocol:
        """The protocol that a group has agreed on. Raises ``ValueError`` for an unknown name."""
        for each in cls:
            if each.group_protocol == name:
                return each
        known = ", ".join(each.group_protocol for each in cls)
        raise ValueError(
            f"{name!r} is not an embedded protocol of Kafka Connect; those are {known}"
        )


class RebalanceReason(enum.IntEnum):
    """Why a worker asks its group for a new assignment: ``AssignorMetadata.reason``. Custom reasons
    begin at 64."""

    NONE = 0
    SCHEDULED_REBALANCE = 1
    """The delay of the last assignment is over."""
    CONFIGURATION_CHANGED = 2
    """Connectors or tasks were added or removed."""
    RETRY = 3
    """The last assignment was an error."""
    WORKER_CHANGED = 4
    """The policy or capacity of this worker has changed."""
