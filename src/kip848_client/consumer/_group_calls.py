"""Calls about a consumer's group, beside its subscription and its offsets."""

from __future__ import annotations

import logging
from typing import Final, TypeVar

from kip848_client._shown import shown
from kip848_client._types import GroupMetadata
from kip848_client.consumer._watched import Watched
from kip848_client.errors import LocalProtocolError

__all__ = ["GroupCalls"]

_log = logging.getLogger("kip848_client")

K = TypeVar("K")
V = TypeVar("V")

_NO_REBALANCE: Final = (
    "group %s: enforce_rebalance(%s) does nothing: on the protocol of KIP-848 the coordinator "
    "decides when to assign. A client-side assignor asks for a new assignment by another reason or "
    "other data in its metadata()"
)


class GroupCalls(Watched[K, V]):
    """The part of ``Consumer`` that is about its group."""

    def group_metadata(self) -> GroupMetadata:
        """Who this member is, for a transactional producer: a snapshot, to be taken for each
        transaction. Raises ``LocalProtocolError`` without a ``group_id``."""
        config = self._config
        if config.group_id is None:
            raise LocalProtocolError("without a group_id there is no group")
        engine = self._engine
        epoch = None if engine is None or engine.commits is None else engine.commits.member_epoch
        if engine is None or epoch is None:
            return GroupMetadata(config.group_id, -1, "", config.group_instance_id)
        return GroupMetadata(config.group_id, epoch, engine.member_id, config.group_instance_id)

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Log a warning, and do nothing else, as Java's consumer does on this protocol (KIP-848,
        "Deprecate Enforcing Rebalances").

        ``reason``: for the log. To have partitions assigned again, change the ``reason`` or the
        ``data`` of what a client-side assignor's ``metadata()`` returns.
        """
        given = "" if reason is None else f"reason={shown(reason)}"
        _log.warning(_NO_REBALANCE, self._config.group_id, given)
