"""The requests of a group: each is sent once, and each outcome is one event.

The core decides what an outcome means, and whether to retry.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from kip848_client.core.client_assignors import PreparedGroup
from kip848_client.core.group import (
    AssignmentImpossible,
    AssignmentLost,
    AssignmentPrepared,
    CommittedAnswered,
    CommittedImpossible,
    CommittedLost,
    FetchCommitted,
    Input,
    InstallAssignment,
    PrepareAssignment,
)
from kip848_client.core.group_wire.assignors import (
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
    with_racks,
)
from kip848_client.core.group_wire.heartbeat import (
    HEARTBEAT_VERSIONS,
    heartbeat_outcome,
    heartbeat_request,
)
from kip848_client.core.group_wire.offsets import (
    TopicTable,
    commit_request,
    commit_results,
    committed_offsets,
    fetch_request,
)
from kip848_client.core.member import (
    FindCoordinator,
    ResolveTopics,
    SendHeartbeat,
    TopicsResolved,
)
from kip848_client.core.offsets import CommitAnswered, CommitImpossible, CommitLost, SendCommit
from kip848_client.core.ports import TopicView, Transport
from kip848_client.core.types import GroupId, MemberId, TopicId
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kip848_client.error_codes import passes_in_lookup
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.runtime._membership import (
    ask_for_coordinator,
    ask_heartbeat,
)

__all__ = ["GroupRequests"]

_log = logging.getLogger("kip848_client")

_BY_ID: Final = (12, 32767)
"""Metadata versions that accept topic ids."""


class GroupRequests:
    """Sends the core's requests. ``unsupported`` builds the error for a broker without KIP-848.
    ``offers_assignors``: whether the member does."""

    def __init__(
        self,
        group_id: GroupId,
        member_id: MemberId,
        instance_id: str | None,
        transport: Transport,
        topics: TopicView,
        unsupported: Callable[[UnsupportedVersion], Kip848Error],
        *,
        offers_assignors: bool = False,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self.group_id: Final = group_id
        self._member_id = member_id
        self._instance_id = instance_id
        self._transport = transport
        self._topics = topics
        self._unsupported = unsupported
        self._offers_assignors = offers_assignors
        self._fields: Final = {**(fields or {"group_id": group_id}), "member_id": member_id}
        """Fields added to each log line."""

    def forget_coordinator(self) -> None:
        """The next request to the coordinator looks it up again."""
        self._transport.forget_coordinator()

    async def heartbeat(self, command: SendHeartbeat) -> Input:
        """ConsumerGroupHeartbeat, to the known coordinator."""
        request = heartbeat_request(self.group_id, command.intent)
        return await ask_heartbeat(
            self._transport,
            command,
            request,
            HEARTBEAT_VERSIONS,
            partial(heartbeat_outcome, offers_assignors=self._offers_assignors),
            self._unsupported,
        )

    async def find_coordinator(self, command: FindCoordinator) -> Input:
        """FindCoordinator, to any broker."""
        return await ask_for_coordinator(
            self._transport,
            command,
            self._unsupported,
            self.group_id,
            self._fields,
        )

    async def resolve(self, command: ResolveTopics) -> Input:
        """Metadata by topic id; the topics found are kept up to date from now on."""
        try:
            names = await self._topics.resolve(command.ids)
        except Kip848Error as err:
            _log.info("topics could not be resolved: %s", err, extra=self._fields)
            names = {}
        self._topics.watch(set(names.values()))
        return TopicsResolved(command.query, names)

    async def names(self, ids: Collection[TopicId]) -> Mapping[TopicId, str]:
        """The names of these topics, as far as they are known or can be found."""
        known = {each: self._topics.name_of(each) for each in ids}
        missing = tuple(each for each, name in known.items() if name is None)
        found: Mapping[TopicId, str] = {}
        if missing:
            try:
                found = await self._topics.resolve(missing)
            except Kip848Error as err:
                _log.info("topics could not be resolved: %s", err, extra=self._fields)
        return {each: name for each, name in known.items() if name is not None} | dict(found)

    def commit(self, command: SendCommit) -> Callable[[], Awaitable[Input]]:
        """OffsetCommit, to the coordinator, which is looked up if needed. The topic ids are the
        current ones, which the core has checked: a topic may be deleted and recreated before the
        request is sent."""
        epoch, offsets = command.member_epoch, command.offsets
        table = TopicTable((tp.topic for tp in offsets), self._topics.id_of)
        member = None if epoch is None else (self._member_id, epoch, self._instance_id)
        request = commit_request(self.group_id, member, offsets, table)
        return partial(self._commit, command, request, table)

    async def _commit(self, command: SendCommit, request: Any, table: TopicTable) -> Input:
        attempt = command.attempt
        try:
            await self._transport.find_coordinator()
            response = await self._transport.coordinator(
                request, versions=table.versions, timeout_ms=command.timeout_ms
            )
        except TransportError as err:
            return CommitLost(attempt, str(err))
        except Kip848Error as err:
            if isinstance(err, BrokerError) and passes_in_lookup(err.code):
                return CommitLost(attempt, str(err))
            return CommitImpossible(attempt, err)
        return CommitAnswered(attempt, commit_results(response, table))

    def committed(self, command: FetchCommitted) -> Callable[[], Awaitable[Input]]:
        """OffsetFetch, to the coordinator, which is looked up if needed, for the topics that have
        these names now."""
        epoch, partitions = command.member_epoch, command.partitions
        table = TopicTable((tp.topic for tp in partitions), self._topics.id_of)
        member = None if epoch is None else (self._member_id, epoch)
        request = fetch_request(self.group_id, member, partitions, table)
        return partial(self._committed, command.attempt, request, table)

    async def _committed(self, attempt: int, request: Any, table: TopicTable) -> Input:
        try:
            await self._transport.find_coordinator()
            response = await self._transport.coordinator(request, versions=table.versions)
            code, rows = committed_offsets(response, table)
        except TransportError as err:
            return CommittedLost(attempt, str(err))
        except Kip848Error as err:
            return CommittedImpossible(attempt, err)
        return CommittedAnswered(attempt, code, rows)

    async def prepare(self, command: PrepareAssignment) -> Input:
        """ConsumerGroupPrepareAssignment, to the coordinator, which is looked up if needed."""
        request = prepare_request(self.group_id, self._member_id, command)
        answer = await self._of_coordinator(command, request)
        if isinstance(answer, AssignmentLost | AssignmentImpossible):
            return answer
        prepared = prepare_outcome(command.number, answer)
        group = prepared.group
        if group is None or not any(each.rack_id for each in group.members.values()):
            return prepared
        return AssignmentPrepared(command.number, await self._with_racks(group))

    async def _with_racks(self, group: PreparedGroup) -> PreparedGroup:
        """Return the group with the racks of its replicas, if a broker returns them."""
        topics = tuple(
            MetadataRequestTopic(topic_id=topic.topic_id, name=None)
            for topic in group.topics.values()
        )
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        try:
            answer = await self._transport.any_broker(request, versions=_BY_ID)
        except Kip848Error as err:
            _log.info("racks of replicas could not be learnt: %s", err, extra=self._fields)
            return group
        return with_racks(group, answer)

    async def install(self, command: InstallAssignment) -> Input:
        """ConsumerGroupInstallAssignment, to the coordinator, which is looked up if needed."""
        request = install_request(self.group_id, self._member_id, command)
        answer = await self._of_coordinator(command, request)
        if isinstance(answer, AssignmentLost | AssignmentImpossible):
            return answer
        return install_outcome(command.number, answer)

    async def _of_coordinator(
        self, command: PrepareAssignment | InstallAssignment, request: Any
    ) -> Any:
        number = command.number
        try:
            await self._transport.find_coordinator()
            return await self._transport.coordinator(request, timeout_ms=command.timeout_ms)
        except TransportError as err:
            return AssignmentLost(number, str(err))
        except Kip848Error as err:
            if isinstance(err, BrokerError) and passes_in_lookup(err.code):
                return AssignmentLost(number, str(err))
            return AssignmentImpossible(number, err)
