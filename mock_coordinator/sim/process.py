"""One life of a member: the real ``MemberCore``, driven by virtual time and a bad network.

This is a driver as ``kip848_client.member`` describes it, with nothing real around it: the loop is
the kernel, the transport a ``Lane``, the application an ``Application``, and the commits go through
the real ``CommitterCore``. At any moment a process can be paused (nothing of it runs, everything
waits for it), and it can die.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kip848_client._heartbeat_wire import heartbeat_outcome, heartbeat_request
from kip848_client._types import GroupId, MemberId, TopicId, TopicIdPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.member import (
    Announce,
    Command,
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorRecovered,
    EpochChanged,
    Event,
    FindCoordinator,
    FlushOffsets,
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatLost,
    LeaveCompleted,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberCore,
    MemberSettings,
    MemberState,
    PartitionsStarted,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.wire import request_api
from kip848_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from mock_coordinator.sim.application import Application
from mock_coordinator.sim.committing import Committing
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.lane import Answer, Lane
from mock_coordinator.sim.scene import BROKER, Scene, server_name
from mock_coordinator.sim.watch import Tag, subscription_of

__all__ = ["MemberPlan", "MemberProcess"]

_FENCED: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_PROBED_CODES: Final[dict[int, str]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "coordinator loading",
    ErrorCode.UNKNOWN_MEMBER_ID: "fence",
    ErrorCode.GROUP_ID_NOT_FOUND: "GROUP_ID_NOT_FOUND",
    ErrorCode.FENCED_INSTANCE_ID: "FENCED_INSTANCE_ID",
    ErrorCode.FENCED_MEMBER_EPOCH: "fence",
    ErrorCode.UNRELEASED_INSTANCE_ID: "UNRELEASED_INSTANCE_ID",
}
_RECONCILING: Final = (MemberState.RECONCILING, MemberState.ACKNOWLEDGING)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """What one consumer is configured to do, over all its lives."""

    name: str
    group_id: GroupId
    instance_id: str | None
    assignor: str | None
    auto_commit: bool
    topics: frozenset[str]
    pattern: str | None


class MemberProcess:
    """One process. ``life`` counts the processes of a plan; ``on_exit`` is told when it ended."""

    def __init__(
        self, scene: Scene, plan: MemberPlan, life: int, on_exit: Callable[[MemberProcess], None]
    ) -> None:
        self.scene = scene
        self.plan = plan
        self.name = f"{plan.name}.{life}"
        self.member_id = MemberId(
            f"{plan.name}-{life}-{scene.kernel.rng('ids').getrandbits(32):08x}"
        )
        self.topics = plan.topics
        self.pattern = plan.pattern
        self.alive = True
        self.leaving = False
        self.paused = False
        self.rng = scene.kernel.rng(f"member/{plan.name}")
        self.core = MemberCore(self._settings(), self.member_id, self._jitter)
        self._coordinator = BROKER
        self._lanes: dict[str, Lane] = {}
        self._any = self._lane_to(BROKER)
        self._on_exit = on_exit
        self._inbox: deque[Event] = deque()
        self._draining = False
        self._waiting: list[Callable[[], None]] = []
        self._timer: Timer | None = None
        self._retried_instance = False
        self.heartbeats = 0
        self.coordinator_known = False
        self.application = Application(self)
        self.committing = Committing(self)
        scene.watch.enter(self)
        scene.tell(self.name, "start", f"{self.member_id} {plan.instance_id or ''}")
        self.subscribe(plan.topics, plan.pattern)
        self.application.start()

    def _settings(self) -> MemberSettings:
        options = self.scene.options
        return MemberSettings(
            instance_id=self.plan.instance_id,
            server_assignor=self.plan.assignor,
            max_poll_interval_ms=options.max_poll_interval_ms,
            auto_commit=self.plan.auto_commit,
            request_timeout_ms=options.request_timeout_ms,
        )

    @property
    def lane(self) -> Lane:
        """The connection to the group's coordinator, as far as the process knows."""
        lane = self._lanes.get(self._coordinator)
        if lane is None:
            lane = self._lanes[self._coordinator] = self._lane_to(self._coordinator)
        return lane

    def _lane_to(self, server: str) -> Lane:
        scene, codec = self.scene, self.scene.options.codec
        return Lane(scene.kernel, scene.network, self.plan.name, server, codec=codec)

    def _jitter(self, pause_ms: int) -> int:
        return self.rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    # -- what the watch sees -----------------------------------------------------------------

    @property
    def group_id(self) -> GroupId:
        """The group of its plan."""
        return self.plan.group_id

    @property
    def state(self) -> MemberState:
        """Where its core says it is."""
        return self.core.state

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What its application has been given and has not given back."""
        return self.application.held if self.alive else frozenset()

    # -- life --------------------------------------------------------------------------------

    def enter(self, action: Callable[[], None]) -> None:
        """Do something inside of the process: now, when it wakes up, or never when it is dead."""
        if not self.alive:
            return
        if self.paused:
            self._waiting.append(action)
        else:
            action()

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something inside of the process in ``delay_ms``."""
        self.scene.kernel.after(delay_ms, lambda: self.enter(action))

    def pause(self) -> None:
        """Stop running, and keep everything (SIGSTOP, a long garbage collection, a suspended
        laptop)."""
        if self.alive and not self.paused:
            self.scene.tell(self.name, "pause")
            self.paused = True

    def resume(self) -> None:
        """Run on, with all that came meanwhile."""
        if not self.alive or not self.paused:
            return
        self.scene.tell(self.name, "resume", f"{len(self._waiting)} waiting")
        if self.held and self.scene.watch.book.member(self.group_id, self.member_id) is None:
            self.scene.probes.reached("paused member removed")
        self.paused = False
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            self.enter(action)

    def die(self, why: str) -> None:
        """End at once, without a word to anybody."""
        if not self.alive:
            return
        self.scene.tell(self.name, "die", why)
        self.alive = False
        for lane in self._lanes.values():
            lane.close()
        self._any.close()
        if self._timer is not None:
            self._timer.cancel()
        self.scene.watch.leave(self)
        self._on_exit(self)

    # -- the user ----------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Replace the subscription."""
        if self.leaving or self.core.state is MemberState.FATAL:
            return
        self.topics, self.pattern = topics, pattern
        shown = ",".join(sorted(topics)) + (f" /{pattern}/" if pattern else "")
        self.scene.tell(self.name, "subscribe", shown)
        if pattern is not None:
            self.scene.probes.reached("regex subscription")
        if self.core.state in (MemberState.PREPARE_LEAVING, MemberState.LEAVING):
            self.scene.probes.reached("resubscribed while leaving")
        self.feed(Subscribed(topics, pattern))

    def leave(self, mode: LeaveMode, *, final: bool) -> None:
        """Unsubscribe, or close and end."""
        if self.leaving:
            return
        self.leaving = final
        self.scene.tell(self.name, "close" if final else "unsubscribe", mode.value)
        deadline_ms = self.scene.kernel.now_ms + 30_000
        self.feed(LeaveRequested(mode, deadline_ms, flush=self.plan.auto_commit, final=final))

    # -- the core ----------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        self._inbox.append(event)
        if self._draining or not self.alive:
            return
        self._draining = True
        while self._inbox and self.alive:
            event = self._inbox.popleft()
            commands = self.core.step(self.scene.kernel.now_ms, event)
            if commands or isinstance(event, PartitionsStarted):
                self.application.sync(self.core.fetchable)
            for command in commands:
                self._perform(command)
        self._draining = False
        if self.alive:
            self._set_timer()
            self.committing.find_positions()
            self._end_if_done()

    def _set_timer(self) -> None:
        due_ms = self.core.deadline_ms
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms is not None:
            fire = self._fire
            self._timer = self.scene.kernel.at(due_ms, lambda: self.enter(fire))

    def _fire(self) -> None:
        self.feed(TimerFired())

    def _end_if_done(self) -> None:
        if self.core.closed and self.application.idle:
            self.die("closed")
        elif self.core.state is MemberState.FATAL and self.application.idle:
            self.die(f"fatal: {self.core.fatal_error}")

    def _perform(self, command: Command) -> None:
        match command:
            case SendHeartbeat():
                self._send_heartbeat(command)
            case FindCoordinator():
                self._find_coordinator(command.lookup)
            case ForgetCoordinator():
                self.coordinator_known = False
            case ResolveTopics():
                self._resolve(command)
            case FlushOffsets():
                self.committing.flush(command)
            case ReleasePartitions() | StartPartitions():
                self.application.call_back(command)
            case EpochChanged():
                self.committing.note_epoch(command.member_epoch)
            case Announce():
                self._announced(command)
            case Report():
                self.scene.tell(self.name, "report", f"{command.severity.value} {command.error}")
            case LeaveCompleted():
                self.application.surrender()
                self.scene.tell(self.name, "left", str(command.error or ""))
            case CoordinatorRecovered():
                self.scene.tell(self.name, "recovered", f"{command.silent_ms} ms")
            case _:
                raise AssertionError(command)

    def _announced(self, command: Announce) -> None:
        old, new = command.old, command.new
        self.scene.tell(self.name, "state", f"{old.value} -> {new.value}: {command.why}")
        if new is MemberState.STALE:
            self.scene.probes.reached("poll interval exceeded")
        if old in (MemberState.PREPARE_LEAVING, MemberState.LEAVING):
            self.application.surrender()
        if old is MemberState.ACKNOWLEDGING and new is MemberState.RECONCILING:
            self.scene.probes.reached("partial acknowledgement")

    # -- requests ----------------------------------------------------------------------------

    def _send_heartbeat(self, command: SendHeartbeat) -> None:
        intent, attempt = command.intent, command.attempt
        self.heartbeats = attempt
        request = heartbeat_request(self.group_id, intent)
        said = subscription_of(request)
        tag = Tag(self, attempt, intent.member_epoch, said)
        self.scene.watch.rates.asked(self.scene.kernel.now_ms, self, "heartbeats")
        if intent.member_epoch == -2:
            self.scene.probes.reached("static leave -2")
        was_reconciling = self.core.state in _RECONCILING
        callback = self.application.releasing

        def done(answer: Answer) -> None:
            self._on_heartbeat(tag, answer, reconciling=was_reconciling, releasing=callback)

        self.lane.call(
            request,
            self.scene.profile.api_versions["ConsumerGroupHeartbeat"][1],
            command.timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
            tag=tag,
            repeats=True,
        )

    def _on_heartbeat(
        self, tag: Tag, answer: Answer, *, reconciling: bool, releasing: bool
    ) -> None:
        if isinstance(answer, LossReason):
            self._probe_loss(tag)
            self.scene.tell(self.name, "no answer", f"#{tag.number} {answer.value}")
            self.feed(HeartbeatLost(tag.number, answer))
            return
        outcome = heartbeat_outcome(answer)
        if isinstance(outcome, HeartbeatAccepted):
            if outcome.assignment is not None:
                self.scene.watch.informed(tag)
            if self._retried_instance and outcome.member_epoch > 0:
                self._retried_instance = False
                self.scene.probes.reached("UNRELEASED_INSTANCE_ID retry")
        else:
            probe = _PROBED_CODES.get(outcome.code)
            if probe is not None:
                self.scene.probes.reached(probe)
            if outcome.code == ErrorCode.UNRELEASED_INSTANCE_ID:
                self._retried_instance = True
            if outcome.code in _FENCED and reconciling:
                self.scene.probes.reached("fence during reconciliation")
            if outcome.code in _FENCED and releasing:
                self.scene.probes.reached("revoke interrupted by fence")
        self.feed(HeartbeatAnswered(tag.number, outcome))

    def _probe_loss(self, tag: Tag) -> None:
        answered = self.scene.watch.answer_of(tag)
        if tag.epoch < 0:
            self.scene.probes.reached("leave lost")
        if answered is None or answered[0] != 0:
            return
        self.scene.probes.reached("lost response")
        if 0 < tag.epoch < answered[1]:
            self.scene.probes.reached("lost response with epoch bump")

    def _find_coordinator(self, lookup: int) -> None:
        self.scene.watch.rates.asked(self.scene.kernel.now_ms, self, "lookups")
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(self.group_id,))

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason) or answer.coordinators[0].error_code:
                self.feed(CoordinatorLookupFailed(lookup))
            else:
                self.coordinator_known = True
                self._coordinator = server_name(answer.coordinators[0].node_id)
                self.feed(CoordinatorFound(lookup))

        self.ask_any(request, done)

    def _resolve(self, command: ResolveTopics) -> None:
        self.scene.watch.rates.asked(self.scene.kernel.now_ms, self, "metadata")
        options, query = self.scene.options, command.query
        names: dict[TopicId, str] = {}

        def done(answer: Answer) -> None:
            if not isinstance(answer, LossReason):
                for topic in answer.topics:
                    missing = not self.scene.healed and self.rng.random() < options.unresolved
                    if topic.error_code == 0 and topic.name is not None and not missing:
                        names[TopicId(topic.topic_id)] = topic.name
            slow = 0 if self.scene.healed else self.rng.randint(0, options.resolve_ms_max)
            self.after(slow, lambda: self.feed(TopicsResolved(query, names)))

        topics = tuple(MetadataRequestTopic(topic_id=t, name=None) for t in command.ids)
        self.ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False), done)

    def ask_any(self, request: Any, done: Callable[[Answer], None]) -> None:
        """Send a request to whichever broker answers."""
        self._any.call(
            request,
            self.scene.profile.api_versions[request_api(request).name][1],
            self.scene.options.request_timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
        )
