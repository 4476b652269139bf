"""One Connect group: a reconciled group of workers.

The rule about generations is here. When the tasks of a connector are reconfigured, the new ones
must not start anywhere before the old ones have stopped everywhere. So a task of a generation is
not given to a worker while another worker has one of an older generation of the same connector. The
same holds for a newer generation, in case a target returns to an older one or mixes them: two
generations must not run side by side in either order, and a worker that missed the response with
the newer task would get it again beside the older one. So all workers with tasks of a connector
have tasks of one generation. The connector itself is not affected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.connect import ITSELF, connector_of
from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.records.connect_records import (
    CONNECT_RECORDS,
    ConnectTargetEpoch,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.state_records import RecordTypes, TargetEpoch
from mock_coordinator.core.groups.state.member import Member
from mock_coordinator.core.groups.state.reconciled_group import GroupType, ReconciledGroup

__all__ = ["ConnectGroup", "subscription_of"]

_FIRST_EPOCH: Final = 1
"""An answer with epoch 0 would make every heartbeat a join."""


class ConnectGroup(ReconciledGroup):
    """A group of type connect. Read it freely; only records may change it, except for
    ``unconfirmed``."""

    __slots__ = ("computed_by", "deferred", "unconfirmed")

    type: ClassVar[GroupType] = GroupType.CONNECT
    records: ClassVar[RecordTypes] = CONNECT_RECORDS
    protocol_type: ClassVar[str] = "connect"
    gathers: ClassVar[bool] = True

    def __init__(self, group_id: str, first_epoch: int = _FIRST_EPOCH) -> None:
        super().__init__(group_id, first_epoch)
        self.deferred: Partitions = NO_PARTITIONS
        """items of the target that wait for a worker to return"""
        self.computed_by: str | None = None
        self.unconfirmed: set[str] = set()
        """Workers that got other items and have not reported them yet; transient."""

    @property
    def last_to_compute(self) -> str | None:
        """The worker that computed the target: it may hold the delay of the next computation."""
        return self.computed_by

    @property
    def eldest(self) -> str | None:
        """The worker that joined first, of those that can compute."""
        able = (each for each in self.members if self.members[each].classic is None)
        return min(able, key=self._seniority, default=None)

    @property
    def broker_computes(self) -> bool:
        """Never: it does not know what there is to share."""
        return False

    def _seniority(self, member_id: str) -> tuple[int, str]:
        return subscription_of(self.members[member_id]).joined_epoch, member_id

    def is_subscribed_to(self, topic: str) -> bool:
        """Workers do not subscribe to topics."""
        del topic
        return False

    def release_rule(self, member_id: str, target: Partitions) -> Callable[[TopicId, int], bool]:
        """Whether this worker has to wait for a task of its target because there are still tasks of
        another generation of the connector: another worker's, or its own that it keeps. Where there
        are none at all, it begins with the oldest generation of its target."""
        held: dict[str, set[int]] = {}
        oldest: dict[str, int] = {}
        looked = False

        def is_held_back(resource: TopicId, task: int) -> bool:
            nonlocal looked
            del task
            connector, generation = connector_of(resource)
            if generation == ITSELF:
                return False
            if not looked:
                looked = True
                self._note_held(member_id, target, held)
                _note_oldest(target, oldest)
            if connector in held:
                return held[connector] != {generation}
            return oldest.get(connector, generation) < generation

        return is_held_back

    def _note_held(self, member_id: str, target: Partitions, held: dict[str, set[int]]) -> None:
        """Connector -> the generations of the tasks that others have, or this worker keeps."""
        for resource, holders in self.holders.items():
            connector, generation = connector_of(resource)
            if generation == ITSELF:
                continue
            kept = target.get(resource, ())
            if any(who != member_id or task in kept for task, who in holders.items()):
                held.setdefault(connector, set()).add(generation)

    def apply_target_epoch(self, value: TargetEpoch | None) -> None:
        """Key type 10486."""
        super().apply_target_epoch(value)
        known = value if isinstance(value, ConnectTargetEpoch) else ConnectTargetEpoch(-1)
        self.deferred, self.computed_by = known.deferred, known.computed_by

    def _forget(self, member: Member) -> None:
        super()._forget(member)
        self.unconfirmed.discard(member.member_id)


def _note_oldest(target: Partitions, oldest: dict[str, int]) -> None:
    """Connector -> the oldest generation of its tasks here."""
    for resource in target:
        connector, generation = connector_of(resource)
        if generation != ITSELF:
            oldest[connector] = min(generation, oldest.get(connector, generation))


def subscription_of(member: Member) -> WorkerSubscription:
    """What a worker said about itself; an empty one for a worker that has yet to join."""
    said = member.subscription
    return said if isinstance(said, WorkerSubscription) else WorkerSubscription()
