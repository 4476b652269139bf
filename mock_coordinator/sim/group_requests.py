"""The requests of one process, over the simulated network: each is sent once, each ending is one
event for the group core. The messages are made and read by what the consumer uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final, Protocol

from kip848_client.core.group import CommittedAnswered, CommittedLost, FetchCommitted, Input
from kip848_client.core.group_wire.heartbeat import heartbeat_outcome, heartbeat_request
from kip848_client.core.group_wire.offsets import (
    TopicTable,
    commit_request,
    commit_results,
    committed_offsets,
    fetch_request,
)
from kip848_client.core.member import (
    Assignment,
    CoordinatorFound,
    CoordinatorLookupFailed,
    FindCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatLost,
    LossReason,
    MemberState,
    ResolveTopics,
    SendHeartbeat,
    TopicsResolved,
)
from kip848_client.core.offsets import CommitAnswered, CommitLost, SendCommit
from kip848_client.core.types import MemberId, TopicId, TopicPartition
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kip848_client.error_codes import ErrorCode
from mock_coordinator.sim.checkers import Tag, subscription_of
from mock_coordinator.sim.client_connection import Answer, ClientConnection
from mock_coordinator.sim.context import GroupContext
from mock_coordinator.sim.invariants import MemberView
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.swarm import GroupParameters

__all__ = ["GroupRequests", "Sender"]

_FENCED: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
_PROBED_CODES: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "coordinator loading",
    ErrorCode.UNKNOWN_MEMBER_ID: "fence",
    ErrorCode.GROUP_ID_NOT_FOUND: "GROUP_ID_NOT_FOUND",
    ErrorCode.FENCED_INSTANCE_ID: "FENCED_INSTANCE_ID",
    ErrorCode.FENCED_MEMBER_EPOCH: "fence",
    ErrorCode.UNRELEASED_INSTANCE_ID: "UNRELEASED_INSTANCE_ID",
}
_WITH_TOPIC_IDS: Final = 10
"""The version of OffsetCommit and OffsetFetch from which on topics are named by id."""
_RECONCILING: Final = (MemberState.RECONCILING, MemberState.ACKNOWLEDGING)
_GIVING_UP: Final = (MemberState.RECONCILING, MemberState.PREPARE_LEAVING)


class Sender(MemberView, Protocol):
    """What the requests need of their process."""

    @property
    def context(self) -> GroupContext[GroupParameters]:
        """The world."""
        ...

    @property
    def rng(self) -> Random:
        """The process's own dice."""
        ...

    def feed(self, event: Input) -> None:
        """Give the group core an event."""
        ...

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something inside of the process in ``delay_ms``."""
        ...

    @property
    def releasing(self) -> bool:
        """Whether its revoked callback runs."""
        ...

    def enter(self, action: Callable[[], None]) -> None:
        """Do something inside of the process, as soon as it runs."""
        ...


class GroupRequests:
    """Sends what the core asks for."""

    def __init__(self, sender: Sender, wires: Wires, instance_id: str | None) -> None:
        self._sender = sender
        self._wires = wires
        self._instance_id = instance_id
        self._coordinator: str | None = None
        self._connections: dict[str, ClientConnection] = {}
        self._anybody: dict[str, ClientConnection] = {}
        self._asked = 0
        self._looking_up: list[Callable[..., None]] = []
        self._ids: dict[str, TopicId] = {}
        self._retried_instance = False
        self._heartbeats = 0
        self._told: Assignment | None = None
        self._last_commit_ms = 0
        self._commits_open = 0

    def newest_id(self, topic: str) -> TopicId | None:
        """Which topic a name means, by the newest metadata."""
        return self._ids.get(topic)

    @property
    def last_commit_ms(self) -> int:
        """When a commit was under way last."""
        return self._sender.context.kernel.now_ms if self._commits_open else self._last_commit_ms

    def forget_coordinator(self) -> None:
        """The next request to the coordinator looks it up again."""
        self._coordinator = None

    def close(self) -> None:
        """Give all connections up."""
        for connection in (*self._connections.values(), *self._anybody.values()):
            connection.close()

    # -- the member's ------------------------------------------------------------------------

    def heartbeat(self, command: SendHeartbeat) -> None:
        """ConsumerGroupHeartbeat, to the coordinator that is known."""
        sender, context = self._sender, self._sender.context
        request = heartbeat_request(sender.group_id, command.intent)
        epoch = command.intent.member_epoch
        self._heartbeats = command.attempt
        tag = Tag(sender, command.attempt, epoch, subscription_of(request))
        context.checkers.rates.asked(context.kernel.now_ms, sender, "heartbeats")
        if epoch >= 0:
            context.checkers.early_heartbeats.sent(context.kernel.now_ms, sender)
        if epoch == -2:
            context.probes.reached("static leave -2")
        reconciling, releasing = sender.state in _RECONCILING, sender.releasing

        def done(answer: Answer) -> None:
            self._on_heartbeat(tag, answer, reconciling=reconciling, releasing=releasing)

        if self._coordinator is None:
            sender.after(1, lambda: done(LossReason.NOT_SENT))
            return
        self._connection().call(
            request,
            context.profile.api_versions["ConsumerGroupHeartbeat"][1],
            command.timeout_ms,
            lambda answer: sender.enter(lambda: done(answer)),
            tag=tag,
            repeats=True,
        )

    def _on_heartbeat(
        self, tag: Tag, answer: Answer, *, reconciling: bool, releasing: bool
    ) -> None:
        sender, context = self._sender, self._sender.context
        reached, early = context.probes.reached, context.checkers.early_heartbeats
        if isinstance(answer, LossReason):
            early.cause(sender)
            self._probe_loss(tag)
            context.tell(sender.name, "no answer", f"#{tag.number} {answer.value}")
            sender.feed(HeartbeatLost(tag.number, answer))
            return
        outcome = heartbeat_outcome(answer)
        if isinstance(outcome, HeartbeatAccepted):
            news = outcome.assignment is not None and (
                tag.epoch == 0 or outcome.assignment != self._told
            )
            early.told(sender, outcome.heartbeat_interval_ms, news=news)
            if news:
                self._told = outcome.assignment
            elif tag.epoch == 0:
                early.cause(sender)  # it asks until it gets an assignment
            if outcome.assignment is not None:
                context.checkers.informed(tag)
            if self._retried_instance and outcome.member_epoch > 0:
                self._retried_instance = False
                reached("UNRELEASED_INSTANCE_ID retry")
        else:
            early.cause(sender)
            code = outcome.code
            if code in _PROBED_CODES:
                reached(_PROBED_CODES[ErrorCode(code)])
            if code == ErrorCode.UNRELEASED_INSTANCE_ID:
                self._retried_instance = True
            if code in _FENCED and reconciling:
                reached("fence during reconciliation")
            if code in _FENCED and releasing:
                reached("revoke interrupted by fence")
        sender.feed(HeartbeatAnswered(tag.number, outcome))

    def _probe_loss(self, tag: Tag) -> None:
        context = self._sender.context
        answered = context.checkers.answer_of(tag)
        if tag.epoch < 0:
            context.probes.reached("leave lost")
        if answered is None or answered[0] != 0:
            return
        context.probes.reached("lost response")
        if 0 < tag.epoch < answered[1]:
            context.probes.reached("lost response with epoch bump")

    def find_coordinator(self, command: FindCoordinator) -> None:
        """FindCoordinator, to any broker."""

        def done(*, found: bool) -> None:
            lookup = command.lookup
            event = CoordinatorFound(lookup) if found else CoordinatorLookupFailed(lookup)
            self._sender.feed(event)

        self._look_up(done)

    def resolve(self, command: ResolveTopics) -> None:
        """Metadata by topic id, which may leave some out or take its time."""
        sender, context = self._sender, self._sender.context
        context.checkers.rates.asked(context.kernel.now_ms, sender, "metadata")
        names: dict[TopicId, str] = {}

        def done(answer: Answer) -> None:
            if not isinstance(answer, LossReason):
                for topic in answer.topics:
                    missing = (
                        not context.healed and sender.rng.random() < context.options.unresolved
                    )
                    if topic.error_code == 0 and topic.name is not None and not missing:
                        names[TopicId(topic.topic_id)] = topic.name
                        self._ids[topic.name] = TopicId(topic.topic_id)
            slow = 0 if context.healed else sender.rng.randint(0, context.options.resolve_ms_max)
            sender.after(slow, lambda: sender.feed(TopicsResolved(command.query, names)))

        topics = tuple(MetadataRequestTopic(topic_id=t, name=None) for t in command.ids)
        self._ask_any(MetadataRequest(topics=topics, allow_auto_topic_creation=False), done)

    # -- offsets -----------------------------------------------------------------------------

    def commit(self, command: SendCommit) -> None:
        """OffsetCommit, to the coordinator, which is looked up if need be."""
        sender, context = self._sender, self._sender.context
        epoch, offsets = command.member_epoch, command.offsets
        table = self._table(offsets)
        member = None
        if epoch is not None:
            member = (MemberId(sender.member_id), epoch, self._instance_id)
        request = commit_request(sender.group_id, member, offsets, table)
        context.checkers.rates.asked(context.kernel.now_ms, sender, "commits")
        context.checkers.commit_sent(sender, offsets)
        giving_up = sender.state in _GIVING_UP
        self._commits_open += 1

        def done(answer: Answer) -> None:
            self._commits_open -= 1
            self._last_commit_ms = context.kernel.now_ms
            if isinstance(answer, LossReason):
                sender.feed(CommitLost(command.attempt, answer.value))
                return
            results = commit_results(answer, table)
            codes = {0 if each is None else each.code for each in results.values()}
            if ErrorCode.STALE_MEMBER_EPOCH in codes:
                context.probes.reached("stale commit")
                context.checkers.early_heartbeats.cause(sender)
            if giving_up and 0 in codes:
                context.probes.reached("commit before revocation")
            sender.feed(CommitAnswered(command.attempt, results))

        tag = Tag(sender, self._heartbeats, epoch or 0, commit=command.attempt)
        self._ask_coordinator(request, command.timeout_ms, table.versions[1], done, tag)

    def committed(self, command: FetchCommitted) -> None:
        """OffsetFetch, to the coordinator, which is looked up if need be."""
        sender, context = self._sender, self._sender.context
        table = self._table(command.partitions)
        epoch = command.member_epoch
        member = None if epoch is None else (MemberId(sender.member_id), epoch)
        request = fetch_request(sender.group_id, member, command.partitions, table)

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                sender.feed(CommittedLost(command.attempt, answer.value))
                return
            code, rows = committed_offsets(answer, table)
            if code:
                context.checkers.early_heartbeats.cause(sender)
            sender.feed(CommittedAnswered(command.attempt, code, rows))

        timeout_ms = context.options.request_timeout_ms
        self._ask_coordinator(request, timeout_ms, table.versions[1], done, None)

    def _table(self, partitions: Iterable[TopicPartition]) -> TopicTable:
        """The topics of a request; without ids where no version has them, so that a message says as
        much as its bytes would."""
        has_ids = self._sender.context.profile.api_versions["OffsetCommit"][1] >= _WITH_TOPIC_IDS
        id_of = self.newest_id if has_ids else _unknown
        return TopicTable((tp.topic for tp in partitions), id_of)

    # -- inside ------------------------------------------------------------------------------

    def _connection_to(
        self, server: str, connections: dict[str, ClientConnection]
    ) -> ClientConnection:
        connection = connections.get(server)
        if connection is None:
            wires = self._wires
            connection = connections[server] = ClientConnection(
                wires.kernel, wires.network, wires.client, server, codec=wires.codec
            )
        return connection

    def _connection(self) -> ClientConnection:
        assert self._coordinator is not None, "asked for before"
        return self._connection_to(self._coordinator, self._connections)

    def _ask_coordinator(
        self,
        request: Any,
        timeout_ms: int,
        version_max: int,
        done: Callable[[Answer], None],
        tag: Tag | None,
    ) -> None:
        sender = self._sender
        version = min(
            sender.context.profile.api_versions[request_api(request).name][1], version_max
        )

        def ask(*, found: bool) -> None:
            if not found or self._coordinator is None:
                done(LossReason.NOT_SENT)
                return
            self._connection().call(
                request,
                version,
                timeout_ms,
                lambda answer: sender.enter(lambda: done(answer)),
                tag=tag,
            )

        if self._coordinator is None:
            self._look_up(ask)
        else:
            ask(found=True)

    def _look_up(self, done: Callable[..., None]) -> None:
        """Simultaneous calls share one lookup."""
        sender, context = self._sender, self._sender.context
        self._looking_up.append(done)
        if len(self._looking_up) > 1:
            return
        context.checkers.rates.asked(context.kernel.now_ms, sender, "lookups")
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=(sender.group_id,))

        def answered(answer: Answer) -> None:
            found = False
            if not isinstance(answer, LossReason):
                first = answer.coordinators[0]
                found = first.error_code == ErrorCode.NONE
                if found:
                    self._coordinator = self._wires.server_of(first.node_id)
            waiting, self._looking_up = self._looking_up, []
            for each in waiting:
                each(found=found)

        self._ask_any(request, answered)

    def _ask_any(self, request: Any, done: Callable[[Answer], None]) -> None:
        sender, context = self._sender, self._sender.context
        nodes = self._wires.nodes()
        self._asked += 1
        server = self._wires.server_of(nodes[self._asked % len(nodes)])
        self._connection_to(server, self._anybody).call(
            request,
            context.profile.api_versions[request_api(request).name][1],
            context.options.request_timeout_ms,
            lambda answer: sender.enter(lambda: done(answer)),
        )


def _unknown(_topic: str) -> TopicId | None:
    return None
