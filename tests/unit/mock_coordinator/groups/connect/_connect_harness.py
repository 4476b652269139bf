"""Workers that behave as a worker should, slowly, with answers that get lost, and what may never
happen to them.

A worker starts what it is told at once and stops what it must give up only right before it reports
that it did. ``ConnectGroupHarness.check`` is called after every step: it looks at what workers
really run, not at what the coordinator believes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kip848_client.core.connect import (
    ITSELF,
    connector_of,
    parts_of,
    write_items,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentRequestMember,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
)
from mock_coordinator.core.groups import GroupCoordinator, GroupSnapshot
from mock_coordinator.core.groups.record_format import decode_record, encode_record
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.ownership import OwnershipChecker
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

__all__ = ["INC", "ConnectGroupHarness", "Item", "Worker", "rows"]

Item = tuple[str, int, int]
"""connector, generation (-1 for the connector itself), task (-1 likewise)"""

INC = ConnectGroupHeartbeatRequestAssignor(
    name="inc", minimum_version=1, maximum_version=2, version=2, metadata=b"url"
)
_GONE = (25, 82, 110)


def rows(items: Iterable[Item]) -> tuple[ConnectGroupItems, ...]:
    """Items as messages have them."""
    return tuple(
        ConnectGroupItems(connector=connector, runs_connector=True)
        if task == ITSELF
        else ConnectGroupItems(connector=connector, generation=generation, tasks=(task,))
        for connector, generation, task in sorted(items)
    )


def items_of(found: Iterable[ConnectGroupItems]) -> set[Item]:
    """The other way round."""
    return {(*connector_of(resource), task) for resource, task in parts_of(found)}


@dataclass(slots=True)
class Worker:
    """What a worker knows, and what it runs."""

    member_id: str
    instance_id: str | None = None
    epoch: int = 0
    runs: set[Item] = field(default_factory=set[Item])
    told: set[Item] = field(default_factory=set[Item])
    lost: bool = False
    """Whether it missed an answer, so that its next heartbeat says everything."""
    computes: bool = False

    def drop(self) -> None:
        """Stop everything, to join again."""
        self.epoch, self.computes, self.lost = 0, False, False
        self.runs, self.told = set(), set()


class ConnectGroupHarness:
    """Workers of the group ``c``, and a coordinator."""

    def __init__(self, profile: str = "4.4") -> None:
        self.base = GroupHarness(profile, group_initial_rebalance_delay_ms=0)
        self.workers: dict[str, Worker] = {}
        self.checker = OwnershipChecker(lambda: self.base.catalog, self._snapshot)

    def worker(self, member_id: str, instance_id: str | None = None) -> Worker:
        """One of the workers; a new one has yet to join."""
        return self.workers.setdefault(member_id, Worker(member_id, instance_id))

    @property
    def group(self) -> GroupSnapshot:
        """The group, which must exist."""
        group = self.base.groups.snapshot("c")
        assert group is not None
        return group

    def ask(self, request: Any) -> Any:
        """A request and its answer, which the ownership checker sees, too."""
        response = self.base.ask(request, 0)
        event = RequestReceived(1, 1, 0, LOCAL_CLIENT, request)
        self.checker.observe(self.base.now, event, [Reply(1, 1, 0, response, request.API_KEY)])
        return response

    def _snapshot(self, group_id: str) -> GroupSnapshot | None:
        return self.base.groups.snapshot(group_id)  # whose coordinator may be another one by now

    # --- Heartbeats -------------------------------------------------------------------------------

    def beat(
        self, worker: Worker, *, reports: bool = True, lost: bool = False, reason: int = 0
    ) -> ConnectGroupHeartbeatResponse:
        """A heartbeat; one that ``reports`` stops first what it must give up."""
        joins = worker.epoch == 0
        if reports and not joins:
            worker.runs &= worker.told
        full = joins or worker.lost
        request = ConnectGroupHeartbeatRequest(
            group_id="c",
            member_id=worker.member_id,
            member_epoch=worker.epoch,
            instance_id=worker.instance_id,
            rebalance_timeout_ms=10_000 if full else -1,
            client_assignors=(self._offer(reason),) if full or reason else None,
            owned=() if joins else rows(worker.runs) if reports or worker.lost else None,
        )
        response = self.ask(request)
        assert isinstance(response, ConnectGroupHeartbeatResponse)
        if lost:
            worker.lost = True
        else:
            self._take(worker, response)
        self.check()
        return response

    def _offer(self, reason: int) -> ConnectGroupHeartbeatRequestAssignor:
        return ConnectGroupHeartbeatRequestAssignor(
            name=INC.name,
            minimum_version=INC.minimum_version,
            maximum_version=INC.maximum_version,
            version=INC.version,
            metadata=INC.metadata,
            reason=reason,
        )

    def _take(self, worker: Worker, response: ConnectGroupHeartbeatResponse) -> None:
        worker.lost = False
        worker.computes = response.should_compute_assignment
        if response.error_code in _GONE:
            worker.drop()
        elif not response.error_code:
            worker.epoch = response.member_epoch
            if response.assignment is not None:
                worker.told = items_of(response.assignment.items)
                worker.runs |= worker.told

    def leave(self, worker: Worker, *, temporarily: bool = False) -> None:
        """Stop everything and say so."""
        worker.drop()
        request = ConnectGroupHeartbeatRequest(
            group_id="c",
            member_id=worker.member_id,
            member_epoch=-2 if temporarily else -1,
            instance_id=worker.instance_id,
        )
        self.ask(request)
        self.check()

    # --- Computing --------------------------------------------------------------------------------

    def prepare(self, worker: Worker) -> ConnectGroupPrepareAssignmentResponse:
        """Take the group as it is."""
        request = ConnectGroupPrepareAssignmentRequest(
            group_id="c", member_id=worker.member_id, member_epoch=worker.epoch
        )
        response = self.ask(request)
        assert isinstance(response, ConnectGroupPrepareAssignmentResponse)
        return response

    def install(
        self,
        worker: Worker,
        group_epoch: int,
        to: dict[str, set[Item]],
        deferred: Iterable[Item] = (),
        *,
        error: int = 0,
        version: int = 2,
        metadata: bytes = b"",
    ) -> int:
        """Return what was computed; the error code."""
        worker.computes = False
        request = ConnectGroupInstallAssignmentRequest(
            group_id="c",
            member_id=worker.member_id,
            member_epoch=worker.epoch,
            group_epoch=group_epoch,
            error=error,
            members=tuple(
                ConnectGroupInstallAssignmentRequestMember(
                    member_id=member_id, items=rows(items), version=version, metadata=metadata
                )
                for member_id, items in to.items()
            ),
            deferred=rows(deferred),
        )
        response = self.ask(request)
        assert isinstance(response, ConnectGroupInstallAssignmentResponse)
        self.check()
        return response.error_code

    def compute(
        self, worker: Worker, place: Callable[[list[str]], dict[str, set[Item]]]
    ) -> tuple[int, int]:
        """Prepare and install what ``place`` makes of the members; the group epoch, and the error
        code of one of the two."""
        given = self.prepare(worker)
        if given.error_code:
            worker.computes = False
            return -1, given.error_code
        to = place([each.member_id for each in given.members])
        return given.group_epoch, self.install(worker, given.group_epoch, to)

    # --- Laws -------------------------------------------------------------------------------------

    def check(self) -> None:
        """What must hold after every step."""
        self.checker.check()
        group = self.base.groups.snapshot("c")
        if group is None:
            return
        self._nobody_runs_what_another_one_runs(group)
        for item, holders in _held(group).items():
            assert len(holders) == 1, (item, holders)
        _generations_do_not_mix(group)

    def _nobody_runs_what_another_one_runs(self, group: GroupSnapshot) -> None:
        running: dict[tuple[str, int], str] = {}
        generations: dict[str, tuple[int, str]] = {}
        for worker in self.workers.values():
            if worker.member_id in group.members:
                for connector, generation, task in sorted(worker.runs):
                    other = running.setdefault((connector, task), worker.member_id)
                    assert other == worker.member_id, (connector, task, other, worker.member_id)
                    if task != ITSELF:
                        first = generations.setdefault(connector, (generation, worker.member_id))
                        assert first[0] == generation, (connector, first, worker)

    def replayed(self, records: Iterable[StateRecord]) -> GroupCoordinator:
        """Another coordinator from these records, by way of their bytes."""
        base = self.base
        stored = [encode_record(base.profile, record) for record in records]
        read = [decode_record(key, value) for key, value in stored]
        known = [record for record in read if record is not None]
        assert len(known) == len(stored)
        return GroupCoordinator.replay(
            base.profile, base.config, base.catalog, lambda: "unused", known, base.now
        )


def _held(group: GroupSnapshot) -> dict[tuple[str, int], list[str]]:
    """(connector, task) -> who has it, assigned or to be given up, in whatever generation."""
    held: dict[tuple[str, int], list[str]] = {}
    for member_id, member in group.members.items():
        for owned in (member.owned, member.pending_revocation):
            for connector, _, task in items_of(write_items(owned)):
                held.setdefault((connector, task), []).append(member_id)
    return held


def _generations_do_not_mix(group: GroupSnapshot) -> None:
    """All tasks of a connector that anybody has, assigned or to be given up, are of one
    generation."""
    found: dict[str, tuple[int, str]] = {}
    for member_id, member in group.members.items():
        for owned in (member.owned, member.pending_revocation):
            for connector, generation, task in sorted(items_of(write_items(owned))):
                if task != ITSELF:
                    first = found.setdefault(connector, (generation, member_id))
                    assert first[0] == generation, (connector, first, member_id, generation)


def is_settled(group: GroupSnapshot) -> bool:
    """Whether every worker has what it should have."""
    return all(
        member.state is MemberState.STABLE and member.epoch == group.assignment_epoch
        for member in group.members.values()
    )
