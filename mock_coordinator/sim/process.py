"""One life of a member: the real ``GroupCore``, driven by virtual time and a bad network.

This is a driver as ``kip848_client.group`` describes it, with nothing real around it: the loop is
the kernel, the transport a simulated network, the application an ``Application``. It performs the
same commands as the consumer and decides nothing either. At any moment a process can be paused
(nothing of it runs, everything waits for it), and it can die.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client._backoff import backoff_ms
from kip848_client._types import GroupId, MemberId, TopicIdPartition
from kip848_client.group import (
    AssignPartitions,
    AutomaticCommitFailed,
    AwaitApplication,
    CallListener,
    CommittedFailed,
    CommittedFound,
    FetchCommitted,
    ForgetPartitions,
    GroupCore,
    Input,
    Output,
    PollWanted,
    StartFetching,
)
from kip848_client.member import (
    Announce,
    CoordinatorRecovered,
    FindCoordinator,
    ForgetCoordinator,
    LeaveCompleted,
    LeaveMode,
    LeaveRequested,
    MemberCore,
    MemberSettings,
    MemberState,
    Report,
    ResolveTopics,
    SendHeartbeat,
    Subscribed,
    TimerFired,
)
from kip848_client.offsets import (
    CommitDone,
    CommitterCore,
    CommitterSettings,
    OffsetTracker,
    SendCommit,
)
from mock_coordinator.sim.application import Application
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.group_requests import GroupRequests
from mock_coordinator.sim.stepping import Stepping

__all__ = ["MemberPlan", "MemberProcess"]

_AUTO_COMMIT_INTERVAL_MS: Final = 5_000
_RETRY_BACKOFF_MS: Final = 100
_RETRY_BACKOFF_MAX_MS: Final = 1_000


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
    """One process. ``life`` counts the processes of a plan; ``on_exit`` is called when it ended."""

    def __init__(
        self,
        context: SimContext,
        plan: MemberPlan,
        life: int,
        on_exit: Callable[[MemberProcess], None],
    ) -> None:
        self.context = context
        self.plan = plan
        self.name = f"{plan.name}.{life}"
        self.member_id = MemberId(
            f"{plan.name}-{life}-{context.kernel.rng('ids').getrandbits(32):08x}"
        )
        self.topics = plan.topics
        self.pattern = plan.pattern
        self.alive = True
        self.leaving = False
        self.paused = False
        self.rng = context.kernel.rng(f"member/{plan.name}")
        self._tracker = OffsetTracker()
        self._requests = GroupRequests(self, plan.name, plan.instance_id)
        self._group = self._build_group()
        self._on_exit = on_exit
        self._stepping: Stepping[Input] = Stepping(
            context.kernel, self._step, lambda: self._group.deadline_ms, self._fire, self.enter
        )
        self._waiting: list[Callable[[], None]] = []
        self.application = Application(self, plan.name, self._tracker, auto_commit=plan.auto_commit)
        context.checkers.enter(self)
        context.tell(self.name, "start", f"{self.member_id} {plan.instance_id or ''}")
        self.subscribe(plan.topics, plan.pattern)
        self.application.start()

    def _build_group(self) -> GroupCore:
        options, plan = self.context.options, self.plan
        member = MemberSettings(
            instance_id=plan.instance_id,
            server_assignor=plan.assignor,
            max_poll_interval_ms=options.max_poll_interval_ms,
            auto_commit=plan.auto_commit,
            request_timeout_ms=options.request_timeout_ms,
            retry_backoff_ms=_RETRY_BACKOFF_MS,
            extra_heartbeats=options.extra_heartbeats,
        )
        committer = CommitterSettings(
            auto_commit_interval_ms=_AUTO_COMMIT_INTERVAL_MS if plan.auto_commit else None,
            request_timeout_ms=options.request_timeout_ms,
            retry_backoff_ms=_RETRY_BACKOFF_MS,
        )
        return GroupCore(
            MemberCore(member, self.member_id, self._jitter),
            CommitterCore(committer, self._tracker, self._jitter),
            self._requests.newest_id,
            lambda _: None,  # nothing is assigned by hand
            lambda failures: backoff_ms(
                failures, _RETRY_BACKOFF_MS, _RETRY_BACKOFF_MAX_MS, self._jitter
            ),
        )

    def _jitter(self, pause_ms: int) -> int:
        return self.rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    # -- what the checkers see ------------------------------------------------------------------

    @property
    def group_id(self) -> GroupId:
        """The group of its plan."""
        return self.plan.group_id

    @property
    def core(self) -> MemberCore:
        """Its member, for looking at."""
        return self._group.member

    @property
    def state(self) -> MemberState:
        """Where its core says it is."""
        return self.core.state

    @property
    def releasing(self) -> bool:
        """Whether its revoked callback runs."""
        return self.application.releasing

    @property
    def last_commit_ms(self) -> int:
        """When it had a commit under way last."""
        return self._requests.last_commit_ms

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
        self.context.kernel.after(delay_ms, lambda: self.enter(action))

    def pause(self) -> None:
        """Stop running, and keep everything (SIGSTOP, a long garbage collection, a suspended
        laptop)."""
        if self.alive and not self.paused:
            self.context.tell(self.name, "pause")
            self.paused = True

    def resume(self) -> None:
        """Run on, with all that came meanwhile."""
        if not self.alive or not self.paused:
            return
        self.context.tell(self.name, "resume", f"{len(self._waiting)} waiting")
        if self.held and self.context.checkers.groups.member(self.group_id, self.member_id) is None:
            self.context.probes.reached("paused member removed")
        self.paused = False
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            self.enter(action)

    def die(self, why: str) -> None:
        """End at once, without a word."""
        if not self.alive:
            return
        self.context.tell(self.name, "die", why)
        self.alive = False
        self._requests.close()
        self.application.records.close()
        self._stepping.stop()
        self.context.checkers.leave(self)
        self._on_exit(self)

    # -- the user ----------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Replace the subscription."""
        if self.leaving or self.core.state is MemberState.FATAL:
            return
        self.topics, self.pattern = topics, pattern
        shown = ",".join(sorted(topics)) + (f" /{pattern}/" if pattern else "")
        self.context.tell(self.name, "subscribe", shown)
        if pattern is not None:
            self.context.probes.reached("regex subscription")
        if self.core.state in (MemberState.PREPARE_LEAVING, MemberState.LEAVING):
            self.context.probes.reached("resubscribed while leaving")
        self.context.checkers.early_heartbeats.cause(self)
        self.feed(Subscribed(topics, pattern))

    def leave(self, mode: LeaveMode, *, final: bool) -> None:
        """Unsubscribe, or close and end."""
        if self.leaving:
            return
        self.leaving = final
        self.context.tell(self.name, "close" if final else "unsubscribe", mode.value)
        deadline_ms = self.context.kernel.now_ms + 30_000
        self.feed(LeaveRequested(mode, deadline_ms, flush=self.plan.auto_commit, final=final))

    # -- the core ----------------------------------------------------------------------------

    def feed(self, event: Input) -> None:
        """Give the core an event, and perform what it asks for."""
        self._stepping.post(event)
        if self.alive and not self._stepping.is_stepping:
            self._end_if_done()

    def _fire(self) -> None:
        self.feed(TimerFired())

    def _step(self, event: Input) -> None:
        for command in self._group.step(self.context.kernel.now_ms, event):
            self._perform(command)
        self.application.fetch_only(self._group.fetchable)

    def _end_if_done(self) -> None:
        if not self._group.listener_is_idle:
            return
        if self.core.closed:
            self.die("closed")
        elif self.core.state is MemberState.FATAL:
            self.die(f"fatal: {self.core.fatal_error}")

    def _perform(self, command: Output) -> None:
        match command:
            case SendHeartbeat():
                self._requests.heartbeat(command)
            case FindCoordinator():
                self._requests.find_coordinator(command)
            case ForgetCoordinator():
                self._requests.forget_coordinator()
            case ResolveTopics():
                self._requests.resolve(command)
            case SendCommit():
                self._requests.commit(command)
            case FetchCommitted():
                self._requests.committed(command)
            case CallListener():
                self.application.call_listener(command)
            case AwaitApplication():
                self.application.wait_for(command)
            case AssignPartitions():
                self.application.assigned(command)
            case StartFetching():
                self.application.records.started(command.assignment)
            case ForgetPartitions():
                self.application.forget(command.partitions)
            case CommittedFound() | CommittedFailed():
                self.application.found(command)
            case _:
                self._tell(command)

    def _tell(self, command: Output) -> None:
        """Commands that only say something."""
        tell = self.context.tell
        match command:
            case Announce():
                self._announced(command)
            case Report():
                tell(self.name, "report", f"{command.severity.value} {command.error}")
            case LeaveCompleted():
                tell(self.name, "left", str(command.error or ""))
            case CoordinatorRecovered():
                tell(self.name, "recovered", f"{command.silent_ms} ms")
            case AutomaticCommitFailed(partitions=partitions):
                named = ", ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)
                tell(self.name, "not committed", named)
            case PollWanted() | CommitDone():
                pass  # each poll is reported anyway, and nothing waits for a commit
            case _:
                raise AssertionError(command)

    def _announced(self, command: Announce) -> None:
        old, new = command.old, command.new
        self.context.tell(self.name, "state", f"{old.value} -> {new.value}: {command.why}")
        if new in (MemberState.JOINING, MemberState.ACKNOWLEDGING):
            self.context.checkers.early_heartbeats.cause(self)
        if new is MemberState.STALE:
            self.context.probes.reached("poll interval exceeded")
        if old is MemberState.ACKNOWLEDGING and new is MemberState.RECONCILING:
            self.context.probes.reached("partial acknowledgement")
