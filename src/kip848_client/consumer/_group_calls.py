"""Calls about a consumer's group, other than subscription and offsets."""

from __future__ import annotations

import logging
from typing import Final, TypeVar

from kip848_client.consumer._observability import Observability
from kip848_client.core.short import short
from kip848_client.core.types import GroupMetadata
from kip848_client.errors import LocalProtocolError

__all__ = ["GroupCalls"]

_log = logging.getLogger("kip848_client")

K = TypeVar("K")
V = TypeVar("V")

_NO_REBALANCE: Final = (
    "group %s: enforce_rebalance(%s) has no effect: with KIP-848 the coordinator decides when to "
    "assign. To ask for a new assignment, return another reason or other data from metadata() of a "
    "client-side assignor"
)


class GroupCalls(Observability[K, V]):
    """The methods of ``Consumer`` about its group."""

    def group_metadata(self) -> GroupMetadata:
        """Identify this member for a transactional producer (KIP-447).

        Take a new snapshot for each transaction: the member epoch changes with each rebalance.

        Returns:
            The group, the member id and its epoch. Without a membership (not started, not joined,
            left, or assigned manually) the epoch is -1 and the member id is empty.

        Raises:
            LocalProtocolError: There is no ``group_id``.
        """
        config = self._config
        if config.group_id is None:
            raise LocalProtocolError("without a group_id there is no group")
        engine = self._engine
        epoch = None if engine is None or engine.commits is None else engine.commits.member_epoch
        if engine is None or epoch is None:
            return GroupMetadata(config.group_id, -1, "", config.group_instance_id)
        return GroupMetadata(config.group_id, epoch, engine.member_id, config.group_instance_id)

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Log a warning and do nothing else, as Java's consumer does on this protocol.

        KIP-848 ("Deprecate Enforcing Rebalances") leaves it to the coordinator when to assign. To
        ask for a new assignment, return another ``reason`` or ``data`` from a client-side
        assignor's ``metadata()``. Raises nothing.

        Args:
            reason: A text for the log.
        """
        given = "" if reason is None else f"reason={short(reason)}"
        _log.warning(_NO_REBALANCE, self._config.group_id, given)
