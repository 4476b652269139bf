"""Why this worker requests a new assignment, and whether the coordinator has received the reason.

A reason is an event, not a state: each heartbeat that carries one bumps the group epoch, even if it
is the same reason as before. So heartbeats carry it until one of them is accepted, and then it is
removed. Two reasons at the same time are one event with the later reason.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.connect.core._model import AssignorVersions, WorkerSettings
from kip848_client.core.connect import RebalanceReason, WorkerMetadata
from kip848_client.core.member import HeartbeatIntent, OfferedAssignor

__all__ = ["RebalanceReasons"]


class RebalanceReasons:
    """The assignors in heartbeats. ``publish`` passes a new offer to the member core.

    The config offset in the metadata changes with the configuration. It is sent with the next
    reason, and not as a reason of its own, which would cost an assignment each time.
    """

    def __init__(
        self, settings: WorkerSettings, publish: Callable[[tuple[OfferedAssignor, ...]], None]
    ) -> None:
        self._url = settings.url
        self._assignors = settings.assignors
        self._publish = publish
        self._reason: int = RebalanceReason.NONE
        self._told_by: int | None = None
        """The heartbeat that carries the reason."""
        self.config_offset = -1
        """The config offset that this worker knows."""

    def begin(self, config_offset: int) -> None:
        """The worker joins."""
        self.config_offset = config_offset
        self._tell(RebalanceReason.NONE)

    def request(self, reason: int, assignors: tuple[AssignorVersions, ...] | None = None) -> None:
        """The group needs a new assignment. ``assignors``: their new metadata. A reason in it takes
        precedence over ``reason``."""
        if assignors is not None:
            self._assignors = assignors
        self._tell(reason, of_assignors=assignors is not None)

    def sent(self, attempt: int, intent: HeartbeatIntent) -> None:
        """A heartbeat was sent."""
        offer = intent.client_assignors
        if self._reason and offer is not None and any(each.reason for each in offer):
            self._told_by = attempt

    def accepted(self, attempt: int) -> None:
        """A heartbeat was accepted."""
        if attempt == self._told_by:
            self._tell(RebalanceReason.NONE)

    def _tell(self, reason: int, *, of_assignors: bool = False) -> None:
        self._reason, self._told_by = reason, None
        self._publish(tuple(self._offered(reason, of_assignors=of_assignors)))

    def _offered(self, reason: int, *, of_assignors: bool) -> list[OfferedAssignor]:
        url, offset = self._url, self.config_offset
        return [
            OfferedAssignor(
                name=each.name,
                minimum_version=each.minimum_version,
                maximum_version=each.maximum_version,
                reason=(each.own_reason if of_assignors else 0) or reason,
                metadata_version=each.version,
                metadata=WorkerMetadata(url, offset, version=each.version, data=each.data).encode(),
            )
            for each in self._assignors
        ]
