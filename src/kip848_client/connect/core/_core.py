"""The membership of a worker in a group of Connect workers, on the protocol of KIP-848
(docs/reference/draft-protocols.md).

Theory of operation
-------------------
The life of a membership is the same for whoever reconciles: heartbeats, epochs, fences, what is
given up before what is taken. ``MemberCore`` has all of it, proven for consumers, and knows nothing
of what is shared but whether two of it are the same. ``WorkerCore`` holds one, gives it items under
the names that it has for them (``_partitions``), and adds what is a worker's own:

- Nothing is started before the worker knows the configuration that it was assigned from.
- The delay that an assignment announces (``_rebalance_delay``), and reasons to compute anew
  (``_rebalance_reasons``).
- Computing the target of the group, when the coordinator has chosen this worker (``_computing``).
- A worker that hears nothing of the coordinator for as long as its session stops everything
  (``MemberSettings.session_timeout_ms``): an item that runs twice is worse than one that rests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.connect.core._commands import (
    ReadConfiguration,
    StartItems,
    StopItems,
    TellAssignors,
    WorkerCommand,
)
from kip848_client.connect.core._computing import Answer, Computing
from kip848_client.connect.core._events import (
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    RebalanceRequested,
    WorkerEvent,
)
from kip848_client.connect.core._model import AssignedItem, Configuration, WorkerSettings
from kip848_client.connect.core._partitions import items, plain, topic_name
from kip848_client.connect.core._rebalance_delay import ScheduledRebalance
from kip848_client.connect.core._rebalance_reasons import RebalanceReasons
from kip848_client.core.backoff import backoff_ms
from kip848_client.core.connect import NewWorkerAssignment, RebalanceReason, WorkerAssignment
from kip848_client.core.member import (
    AssignorNews,
    AssignorsHeard,
    AssignorsOffered,
    Command,
    CoordinatorLost,
    EpochChanged,
    Event,
    Fenced,
    FlushOffsets,
    HeartbeatAccepted,
    HeartbeatAnswered,
    MemberCore,
    MemberState,
    OfferedAssignor,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    Severity,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.outside import from_outside
from kip848_client.core.types import MemberId, Wait
from kip848_client.errors import LocalProtocolError, WireError

__all__ = ["Output", "WorkerCore"]

Output = Command | WorkerCommand
"""Whatever a step may ask for."""

_NO_ASSIGNMENT: Final = WorkerAssignment()


class WorkerCore:
    """A worker's membership as pure state; driven as ``MemberCore`` is.

    Args:
        settings: What the membership needs; at least one assignor.
        member_id: Made by the caller from real randomness, once for each process.
        jitter: Gets a pause in milliseconds, and returns it varied by up to 20 %.

    Raises:
        LocalProtocolError: ``settings`` has no assignor.
    """

    def __init__(
        self, settings: WorkerSettings, member_id: MemberId, jitter: Callable[[int], int]
    ) -> None:
        if not settings.assignors:
            raise LocalProtocolError("a worker needs an assignor: one of the group has to compute")
        jitter = from_outside(jitter)
        self._settings = settings
        self._jitter = jitter
        self._member = MemberCore(settings.of_member(), member_id, jitter)
        self._reasons = RebalanceReasons(settings, self._publish)
        self._scheduled = ScheduledRebalance(member_id)
        self._said = _NO_ASSIGNMENT
        """What the assignor says with the newest assignment."""
        self._told: NewWorkerAssignment | None = None
        """What the assignors here were told last."""
        self._waiting: StartPartitions | None = None
        """What is started when the configuration is known."""
        self._configuration = Configuration()
        self._now = 0
        self._inner: deque[Event] = deque()
        """What the member has yet to be told in this step."""
        self._out: list[Output] = []
        self._computing = Computing(
            settings,
            member_id,
            self._pause_ms,
            self._out_append,
            suspect_coordinator=self._suspect,
            remaining_delay_ms=self._scheduled.remaining_ms,
        )

    # -- what a driver reads -----------------------------------------------------------------

    @property
    def member_id(self) -> MemberId:
        """The id that it was given; never changes."""
        return self._member.member_id

    @property
    def state(self) -> MemberState:
        """Where the member is."""
        return self._member.state

    @property
    def member_epoch(self) -> int | None:
        """The epoch of its membership, ``None`` when not in the group."""
        return self._member.commit_epoch

    @property
    def closed(self) -> bool:
        """Whether a final leave has completed: no command will come any more."""
        return self._member.closed

    @property
    def assigned(self) -> tuple[AssignedItem, ...]:
        """What this worker runs, or is about to start or stop."""
        return items(self._member.assigned)

    @property
    def leader(self) -> str:
        """The member that computed the newest assignment; empty before the first."""
        return self._said.leader

    @property
    def leader_url(self) -> str:
        """Where to reach it."""
        return self._said.leader_url

    @property
    def waits(self) -> Mapping[str, Wait]:
        """What is waited for: the coordinator."""
        return self._member.snapshot().waits

    @property
    def heartbeat_interval_ms(self) -> int:
        """How often the coordinator wants a heartbeat."""
        return self._member.snapshot().heartbeat_interval_ms

    def remaining_delay_ms(self, now_ms: int) -> int:
        """Get what is left of the newest assignment's delay. Raises nothing.

        Args:
            now_ms: The driver's clock, in milliseconds.

        Returns:
            Milliseconds; 0 for no delay.
        """
        return self._scheduled.remaining_ms(now_ms)

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        computing = self._computing
        times = [self._member.deadline_ms, self._scheduled.due_ms]
        times += [computing.due_ms, computing.retry_ms]
        return min((time for time in times if time is not None), default=None)

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event | WorkerEvent) -> tuple[Output, ...]:
        """Take one event.

        Args:
            now_ms: The driver's clock, in milliseconds. An earlier time than before counts as that.
            event: What happened.

        Returns:
            What to do, in order.

        Raises:
            LocalProtocolError: The state does not allow the event, or the event answers a question
                that was never asked. Nothing has changed then.
        """
        self._now = max(self._now, now_ms)
        self._out = []
        match event:
            case JoinRequested():
                self._know(event.configuration)
                self._reasons.begin(event.configuration.offset)
                self._inner += (Subscribed(), Polled(waiting=True))
            case ConfigurationRead():
                self._inner.append(TimerFired())  # after the end of the session, nothing may start
                self._settle()
                self._know(event.configuration)
            case RebalanceRequested():
                self._reasons.request(event.reason, event.assignors)
            case ItemsStopped():
                self._inner.append(PartitionsReleased(event.plan))
            case ItemsStarted():
                self._inner.append(PartitionsStarted(event.plan))
            case Event():
                self._inner.append(event)
            case _:
                if not isinstance(event, Answer):
                    raise LocalProtocolError(f"a worker knows nothing of {event!r}")
                self._computing.answered(self._now, event)
        self._settle()
        if isinstance(event, HeartbeatAnswered) and isinstance(event.outcome, HeartbeatAccepted):
            self._reasons.accepted(event.attempt)
            self._settle()
        return tuple(self._out)

    # -- inside ------------------------------------------------------------------------------

    def _out_append(self, command: Output) -> None:
        self._out.append(command)

    def _pause_ms(self, failures: int) -> int:
        settings = self._settings
        first, cap = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        return backoff_ms(failures, first, cap, self._jitter)

    def _suspect(self, why: str) -> None:
        self._inner.append(CoordinatorLost(why))

    def _publish(self, offer: tuple[OfferedAssignor, ...]) -> None:
        self._inner.append(AssignorsOffered(offer))

    def _settle(self) -> None:
        """Tell the member what it has to be told, and do what is due, until nothing is left."""
        if self._scheduled.take_due(self._now):
            self._reasons.request(RebalanceReason.SCHEDULED_REBALANCE)
        if self._computing.take_retry(self._now):
            self._reasons.request(RebalanceReason.RETRY)
        while True:
            while self._inner:
                for command in self._member.step(self._now, self._inner.popleft()):
                    self._perform(command)
            due_ms = self._computing.due_ms
            if due_ms is None or self._now < due_ms:
                return
            self._computing.go_on(self._now)

    def _perform(self, command: Command) -> None:
        """What the member asks for: here, or by passing it on."""
        match command:
            case ResolveTopics():
                names = {each: topic_name(each) for each in command.ids}
                self._inner.append(TopicsResolved(command.query, names))
                return
            case ReleasePartitions():
                self._waiting = None
                self._stop(command)
                return
            case StartPartitions():
                self._waiting = command
                self._start_what_waits()
                return
            case AssignorsHeard():
                self._on_heard(command)
                return
            case FlushOffsets():
                raise AssertionError("a worker has no offsets to commit")
            case Fenced():
                self._scheduled.forget()
                self._computing.put_out()
                self._told = None
            case EpochChanged():
                self._computing.note_epoch(command.member_epoch)
            case SendHeartbeat():
                self._computing.heartbeat_sent(command.attempt)
                self._reasons.sent(command.attempt, command.intent)
            case _:
                pass
        self._out.append(command)

    def _know(self, configuration: Configuration) -> None:
        if configuration.offset < self._configuration.offset:
            return
        self._configuration = configuration
        self._reasons.config_offset = configuration.offset
        self._computing.know(self._now, configuration)
        self._start_what_waits()

    def _stop(self, command: ReleasePartitions) -> None:
        named = items(command.partitions)
        self._out.append(StopItems(command.plan, named, command.lost, command.last))

    def _start_what_waits(self) -> None:
        """Start what was assigned, once the configuration is known that it was assigned from."""
        waiting = self._waiting
        if waiting is None:
            return
        if waiting.partitions and self._configuration.offset < self._said.config_offset:
            self._out.append(ReadConfiguration(self._said.config_offset))
            return
        self._waiting = None
        new, everything = items(waiting.partitions), items(waiting.assignment)
        self._out.append(StartItems(waiting.plan, new, everything))

    def _on_heard(self, heard: AssignorsHeard) -> None:
        news = heard.news
        self._hear_what_is_said(news)
        self._tell_assignors(heard.member_epoch, news)
        self._computing.heard(self._now, heard.attempt, should_compute=news.should_compute)

    def _tell_assignors(self, member_epoch: int, news: AssignorNews) -> None:
        """The coordinator repeats an assignment until it is acknowledged: told once."""
        if news.target is None:
            return
        said = self._said if news.metadata else _NO_ASSIGNMENT
        new = NewWorkerAssignment(
            member_epoch,
            plain(news.target),
            said.delay_ms,
            news.error,
            said.data,
            news.metadata_version,
            self.member_id,
        )
        if new != self._told:
            self._told = new
            self._out.append(TellAssignors(new))

    def _hear_what_is_said(self, news: AssignorNews) -> None:
        if news.target is None or not news.metadata:
            return
        try:
            said = WorkerAssignment.decode(news.metadata, version=news.metadata_version)
        except WireError as err:
            self._out.append(Report(err, Severity.NOTICE))
            return
        self._said = said
        computed_here = said.leader == self.member_id
        if not computed_here:
            self._computing.another_computed()
        self._scheduled.announced(
            self._now,
            news.metadata,
            said.delay_ms,
            computed_here=computed_here,
            interval_ms=self._member.snapshot().heartbeat_interval_ms,
        )
