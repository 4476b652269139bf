"""The requests of one worker, over the simulated network: each is sent once, each ending is one
event for its core. The messages are made and read by what a real worker uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kip848_client.connect.core import (
    ComputingLost,
    InstallTarget,
    PrepareTarget,
    WorkerEvent,
    heartbeat_outcome,
    heartbeat_request,
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
)
from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    Event,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    LossReason,
    SendHeartbeat,
)
from kip848_client.core.types import GroupId, MemberId
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.sim.client_connection import Answer
from mock_coordinator.sim.node_requests import NodeRequests, Wires
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.workers.context import GROUP

__all__ = ["WorkerRequests"]

_GROUP = GroupId(GROUP)
_FENCES = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)


class WorkerRequests:
    """Sends what the core asks for, and feeds it the answers."""

    def __init__(
        self,
        wires: Wires,
        probes: Probes,
        member_id: MemberId,
        feed: Callable[[Event | WorkerEvent], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        self._nodes = NodeRequests(wires, lambda _: None, enter)
        self._heartbeats = self._nodes.own_connections()
        self._probes = probes
        self._member_id = member_id
        self._feed = feed
        self._coordinator: int | None = None
        self._waiting: list[Callable[[], None]] = []
        """For the coordinator to be looked up."""
        self.heard_ms = 0
        """When the newest heartbeat was sent that was accepted."""

    def close(self) -> None:
        """The process is gone."""
        self._nodes.close()

    def forget_coordinator(self) -> None:
        """The next request to the coordinator looks it up again."""
        self._coordinator = None

    def find_coordinator(self, command: FindCoordinator) -> None:
        """FindCoordinator, to any broker."""

        def done() -> None:
            found = self._coordinator is not None
            kind = CoordinatorFound if found else CoordinatorLookupFailed
            self._feed(kind(command.lookup))

        self._look_up(done)

    def heartbeat(self, command: SendHeartbeat) -> None:
        """ConnectGroupHeartbeat, to the coordinator that is known."""
        attempt, sent_ms = command.attempt, self._nodes.wires.kernel.now_ms

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._feed(HeartbeatLost(attempt, answer))
                return
            outcome = heartbeat_outcome(answer)
            if isinstance(outcome, HeartbeatRefused):
                self._probe(outcome.code)
            else:
                self.heard_ms = max(self.heard_ms, sent_ms)
            self._feed(HeartbeatAnswered(attempt, outcome))

        if self._coordinator is None:
            wires = self._nodes.wires
            wires.kernel.after(1, lambda: self._nodes.enter(lambda: done(LossReason.NOT_SENT)))
            return
        request = heartbeat_request(_GROUP, command.intent)
        self._nodes.connection(self._heartbeats, self._coordinator).call(
            request,
            0,
            command.timeout_ms,
            lambda answer: self._nodes.enter(lambda: done(answer)),
            tag=(self._member_id, attempt),
        )

    def _probe(self, code: int) -> None:
        if code in _FENCES:
            self._probes.reached("fence")
        elif code == ErrorCode.UNRELEASED_INSTANCE_ID:
            self._probes.reached("a static worker waits")

    def prepare(self, command: PrepareTarget) -> None:
        """ConnectGroupPrepareAssignment, to the coordinator, which is looked up if need be."""
        request = prepare_request(_GROUP, self._member_id, command)
        self._ask(command, request, prepare_outcome)

    def install(self, command: InstallTarget) -> None:
        """ConnectGroupInstallAssignment, to the coordinator, which is looked up if need be."""
        request = install_request(_GROUP, self._member_id, command)

        def outcome(number: int, answer: Any) -> WorkerEvent:
            if answer.error_code:
                self._probes.reached("a target refused")
            return install_outcome(number, answer)

        self._ask(command, request, outcome)

    def _ask(
        self,
        command: PrepareTarget | InstallTarget,
        request: Any,
        outcome: Callable[[int, Any], WorkerEvent],
    ) -> None:
        number = command.number

        def done(answer: Answer) -> None:
            lost = isinstance(answer, LossReason)
            self._feed(ComputingLost(number, answer.value) if lost else outcome(number, answer))

        def ask() -> None:
            if self._coordinator is None:
                done(LossReason.NOT_SENT)
                return
            connection = self._nodes.connection(self._nodes.asking, self._coordinator)
            enter = self._nodes.enter
            connection.call(
                request, 0, command.timeout_ms, lambda answer: enter(lambda: done(answer))
            )

        if self._coordinator is None:
            self._look_up(ask)
        else:
            ask()

    def _look_up(self, done: Callable[[], None]) -> None:
        """Simultaneous calls share one lookup."""
        self._waiting.append(done)
        if len(self._waiting) > 1:
            return
        nodes = self._nodes

        def answered(answer: Answer) -> None:
            if not isinstance(answer, LossReason):
                [found] = answer.coordinators
                self._coordinator = None if found.error_code else found.node_id
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each()

        nodes.connection(nodes.asking, nodes.some_node()).call(
            FindCoordinatorRequest(key_type=0, coordinator_keys=(GROUP,)),
            nodes.version("FindCoordinator", (4, 6)),
            nodes.wires.request_timeout_ms,
            lambda answer: nodes.enter(lambda: answered(answer)),
        )
