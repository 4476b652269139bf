"""Why this worker asks its group for a new assignment, and whether the coordinator knows.

A reason is an event and no state: a heartbeat that brings one moves the group epoch, even when it
is the same as before. So it is in the offer of the heartbeats until one of them is accepted, and
then it is taken out. Two reasons at once are one event; the later one is told.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.connect.core._model import AssignorVersions, WorkerSettings
from kip848_client.core.connect import RebalanceReason, WorkerMetadata
from kip848_client.core.member import HeartbeatIntent, OfferedAssignor

__all__ = ["RebalanceReasons"]


class RebalanceReasons:
    """What heartbeats say of assignors. ``publish`` gives a new offer to the member core.

    The config offset in the metadata changes with every change of the configuration. It is told
    with the next reason, and not as a reason of its own: each would cost an assignment.
    """

    def __init__(
        self, settings: WorkerSettings, publish: Callable[[tuple[OfferedAssignor, ...]], None]
    ) -> None:
        self._url = settings.url
        self._assignors = settings.assignors
        self._publish = publish
        self._reason: int = RebalanceReason.NONE
        self._told_by: int | None = None
        """The heartbeat that says the reason."""
        self.config_offset = -1
        """How far this worker knows the configuration."""

    def begin(self, config_offset: int) -> None:
        """The worker joins."""
        self.config_offset = config_offset
        self._tell(RebalanceReason.NONE)

    def request(self, reason: int, assignors: tuple[AssignorVersions, ...] | None = None) -> None:
        """The group needs a new assignment. ``assignors``: their new metadata. A reason in it
        replaces ``reason``."""
        if assignors is not None:
            self._assignors = assignors
        self._tell(reason, of_assignors=assignors is not None)

    def sent(self, attempt: int, intent: HeartbeatIntent) -> None:
        """A heartbeat went out."""
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
