"""Drives one ``GroupCore`` in virtual time: what it asks for is performed, nothing is decided.

This is a driver as ``kip848_client.core.group`` describes it, with nothing real around it: the loop
is the kernel, the transport a simulated network, the application a ``Client``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.group import (
    AssignPartitions,
    AutomaticCommitFailed,
    AutomaticCommitsRecovered,
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
from kip848_client.core.member import (
    Announce,
    AssignedPartition,
    CoordinatorRecovered,
    EpochChanged,
    FindCoordinator,
    ForgetCoordinator,
    LeaveCompleted,
    MemberCore,
    MemberSettings,
    MemberState,
    Note,
    Report,
    ResolveTopics,
    SendHeartbeat,
    TimerFired,
)
from kip848_client.core.offsets import (
    CommitDone,
    CommitterCore,
    CommitterSettings,
    OffsetTracker,
    SendCommit,
)
from kip848_client.core.types import MemberId, TopicPartition
from kip848_client.history.core import Role
from kip848_client.history.recording import Who, event_of
from kip848_client.observe.core.watching import Chronicle
from mock_coordinator.sim.group_requests import GroupRequests, Sender
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.stepping import Stepping

__all__ = ["Client", "MemberConfig", "Membership"]

_AUTO_COMMIT_INTERVAL_MS: Final = 5_000
_RETRY_BACKOFF_MS: Final = 100
_RETRY_BACKOFF_MAX_MS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig:
    """What a member is configured to do."""

    member_id: MemberId
    instance_id: str | None
    assignor: str | None = None
    auto_commit: bool = False


class Client(Protocol):
    """The side of the application, as far as the group changes it."""

    def call_listener(self, command: CallListener) -> None:
        """Call the listener."""
        ...

    def wait_for(self, command: AwaitApplication) -> None:
        """Say when it is done with its records of these partitions."""
        ...

    def assigned(self, command: AssignPartitions) -> None:
        """The user sees this assignment from now on."""
        ...

    def started(self, command: StartFetching) -> None:
        """The listener is done with these."""
        ...

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone."""
        ...

    def found(self, command: CommittedFound | CommittedFailed) -> None:
        """A look-up of committed offsets ended."""
        ...

    def fetch_only(self, fetchable: Iterable[AssignedPartition]) -> None:
        """What may be handed out from this moment on."""
        ...


class Membership:
    """Of one process, the ``sender``. ``tracker`` is the one that commits read."""

    def __init__(
        self, sender: Sender, wires: Wires, config: MemberConfig, tracker: OffsetTracker
    ) -> None:
        self._sender = sender
        self.requests: Final = GroupRequests(sender, wires, config.instance_id)
        self.group: Final = self._build_group(config, tracker)
        self._client: Client | None = None
        self._chronicle: Final = Chronicle(0)
        self._who: Final[Who] = {
            "role": Role.CONSUMER.value,
            "group_id": sender.group_id,
            "member_id": config.member_id,
            "instance_id": config.instance_id,
            "client_id": sender.name,
        }
        self._stepping: Stepping[Input] = Stepping(
            wires.kernel,
            self._step,
            lambda: self.group.deadline_ms,
            lambda: sender.feed(TimerFired()),
            sender.enter,
        )

    def _build_group(self, config: MemberConfig, tracker: OffsetTracker) -> GroupCore:
        options, jitter = self._sender.context.options, self._jitter
        member = MemberSettings(
            instance_id=config.instance_id,
            server_assignor=config.assignor,
            max_poll_interval_ms=options.max_poll_interval_ms,
            auto_commit=config.auto_commit,
            request_timeout_ms=options.request_timeout_ms,
            retry_backoff_ms=_RETRY_BACKOFF_MS,
            extra_heartbeats=options.extra_heartbeats,
        )
        committer = CommitterSettings(
            auto_commit_interval_ms=_AUTO_COMMIT_INTERVAL_MS if config.auto_commit else None,
            request_timeout_ms=options.request_timeout_ms,
            retry_backoff_ms=_RETRY_BACKOFF_MS,
        )
        return GroupCore(
            MemberCore(member, config.member_id, jitter),
            CommitterCore(committer, tracker, jitter),
            self.requests.newest_id,
            lambda _: None,  # nothing is assigned by hand
            lambda failures: backoff_ms(failures, _RETRY_BACKOFF_MS, _RETRY_BACKOFF_MAX_MS, jitter),
        )

    def _jitter(self, pause_ms: int) -> int:
        return self._sender.rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    def join(self, client: Client) -> None:
        """This is the application; before it is there, nothing may be fed."""
        self._client = client

    @property
    def member(self) -> MemberCore:
        """For looking at."""
        return self.group.member

    @property
    def is_stepping(self) -> bool:
        """Whether an event is being taken."""
        return self._stepping.is_stepping

    def feed(self, event: Input) -> None:
        """Give the core an event, and perform what it asks for."""
        self._stepping.post(event)

    def close(self) -> None:
        """The process is gone."""
        self.requests.close()
        self._stepping.stop()

    # -- what the core asks for --------------------------------------------------------------

    def _step(self, event: Input) -> None:
        client = self._client
        assert client is not None, "it has joined before"
        now_ms, record = self._sender.context.kernel.now_ms, self._sender.context.record
        commands = self.group.step(now_ms, event)
        if record is not None:
            for told in self._chronicle.of(now_ms, event, commands, heartbeats=True):
                record(event_of(told, self._who))
        for command in commands:
            self._perform(command, client)
        client.fetch_only(self.group.fetchable)

    def _perform(self, command: Output, client: Client) -> None:
        match command:
            case SendHeartbeat():
                self.requests.heartbeat(command)
            case FindCoordinator():
                self.requests.find_coordinator(command)
            case ForgetCoordinator():
                self.requests.forget_coordinator()
            case ResolveTopics():
                self.requests.resolve(command)
            case SendCommit():
                self.requests.commit(command)
            case FetchCommitted():
                self.requests.committed(command)
            case CallListener():
                client.call_listener(command)
            case AwaitApplication():
                client.wait_for(command)
            case AssignPartitions():
                client.assigned(command)
            case StartFetching():
                client.started(command)
            case ForgetPartitions():
                client.forget(command.partitions)
            case CommittedFound() | CommittedFailed():
                client.found(command)
            case _:
                self._tell(command)

    def _tell(self, command: Output) -> None:
        """Commands that only say something."""
        tell, name = self._sender.context.tell, self._sender.name
        match command:
            case Announce():
                self._announced(command)
            case Report():
                tell(name, "report", f"{command.severity.value} {command.error}")
            case LeaveCompleted():
                tell(name, "left", str(command.error or ""))
            case CoordinatorRecovered():
                tell(name, "recovered", f"{command.silent_ms} ms")
            case AutomaticCommitFailed(partitions=partitions):
                named = ", ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)
                tell(name, "not committed", named)
            case AutomaticCommitsRecovered(failing_ms=failing_ms):
                tell(name, "committed again", f"{failing_ms} ms")
            case PollWanted() | CommitDone() | EpochChanged() | Note():
                pass  # each poll is reported anyway, and nothing waits for a commit
            case _:
                raise AssertionError(command)

    def _announced(self, command: Announce) -> None:
        context, old, new = self._sender.context, command.old, command.new
        context.tell(self._sender.name, "state", f"{old.value} -> {new.value}: {command.why}")
        if new in (MemberState.JOINING, MemberState.ACKNOWLEDGING):
            context.checkers.early_heartbeats.cause(self._sender)
        if new is MemberState.STALE:
            context.probes.reached("poll interval exceeded")
        if old is MemberState.ACKNOWLEDGING and new is MemberState.RECONCILING:
            context.probes.reached("partial acknowledgement")
