"""The requests of a group: each is sent once, and each ending is one event.

What an ending means, and whether to ask again, is for the core to say.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kip848_client._heartbeat_wire import (
    HEARTBEAT_VERSIONS,
    heartbeat_outcome,
    heartbeat_request,
)
from kip848_client._offsets_wire import (
    TopicTable,
    commit_request,
    commit_results,
    committed_offsets,
    fetch_request,
)
from kip848_client._ports import ConnectionBroken, TopicView, Transport
from kip848_client._types import GroupId, MemberId
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.group import (
    CommittedAnswered,
    CommittedImpossible,
    CommittedLost,
    FetchCommitted,
    Input,
)
from kip848_client.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    LossReason,
    ResolveTopics,
    SendHeartbeat,
    TopicsResolved,
)
from kip848_client.offsets import CommitAnswered, CommitImpossible, CommitLost, SendCommit

__all__ = ["GroupRequests"]

_log = logging.getLogger("kip848_client")


class GroupRequests:
    """Sends what the core asks for. ``unsupported`` makes the error for a broker without
    KIP-848."""

    def __init__(
        self,
        group_id: GroupId,
        member_id: MemberId,
        instance_id: str | None,
        transport: Transport,
        topics: TopicView,
        unsupported: Callable[[UnsupportedVersion], Kip848Error],
    ) -> None:
        self.group_id: Final = group_id
        self._member_id = member_id
        self._instance_id = instance_id
        self._transport = transport
        self._topics = topics
        self._unsupported = unsupported

    def forget_coordinator(self) -> None:
        """The next request to the coordinator looks it up again."""
        self._transport.forget_coordinator()

    async def heartbeat(self, command: SendHeartbeat) -> Input:
        """ConsumerGroupHeartbeat, to the coordinator that is known."""
        attempt, timeout_ms = command.attempt, command.timeout_ms
        request = heartbeat_request(self.group_id, command.intent)
        try:
            answer = await self._transport.coordinator(
                request, versions=HEARTBEAT_VERSIONS, timeout_ms=timeout_ms
            )
        except UnsupportedVersion as err:
            return HeartbeatFailed(attempt, self._unsupported(err))
        except RequestTimedOut:
            return HeartbeatLost(attempt, LossReason.TIMED_OUT)
        except (ConnectionBroken, ProtocolError):
            return HeartbeatLost(attempt, LossReason.DISCONNECTED)
        except TransportError:
            return HeartbeatLost(attempt, LossReason.NOT_SENT)
        except BrokerError as err:
            return HeartbeatFailed(attempt, err)
        return HeartbeatAnswered(attempt, heartbeat_outcome(answer))

    async def find_coordinator(self, command: FindCoordinator) -> Input:
        """FindCoordinator, to any broker."""
        try:
            await self._transport.find_coordinator()
        except BrokerError as err:
            return CoordinatorLookupFailed(command.lookup, None if err.retriable else err)
        except UnsupportedVersion as err:
            return CoordinatorLookupFailed(command.lookup, self._unsupported(err))
        except Kip848Error as err:
            _log.debug("group %s: no coordinator: %s", self.group_id, err)
            return CoordinatorLookupFailed(command.lookup)
        return CoordinatorFound(command.lookup)

    async def resolve(self, command: ResolveTopics) -> Input:
        """Metadata by topic id; what is found is kept up to date from now on."""
        try:
            names = await self._topics.resolve(command.ids)
        except Kip848Error as err:
            _log.info("topics could not be resolved: %s", err)
            names = {}
        self._topics.watch(set(names.values()))
        return TopicsResolved(command.query, names)

    async def commit(self, command: SendCommit) -> Input:
        """OffsetCommit, to the coordinator, which is looked up if need be."""
        attempt, epoch, offsets = command.attempt, command.member_epoch, command.offsets
        table = TopicTable((tp.topic for tp in offsets), self._topics.id_of)
        member = None if epoch is None else (self._member_id, epoch, self._instance_id)
        try:
            await self._transport.find_coordinator()
            response = await self._transport.coordinator(
                commit_request(self.group_id, member, offsets, table),
                versions=table.versions,
                timeout_ms=command.timeout_ms,
            )
        except TransportError as err:
            return CommitLost(attempt, str(err))
        except Kip848Error as err:
            if isinstance(err, BrokerError) and err.retriable:
                return CommitLost(attempt, str(err))
            return CommitImpossible(attempt, err)
        return CommitAnswered(attempt, commit_results(response, table))

    async def committed(self, command: FetchCommitted) -> Input:
        """OffsetFetch, to the coordinator, which is looked up if need be."""
        attempt, epoch, partitions = command.attempt, command.member_epoch, command.partitions
        table = TopicTable((tp.topic for tp in partitions), self._topics.id_of)
        member = None if epoch is None else (self._member_id, epoch)
        try:
            await self._transport.find_coordinator()
            request = fetch_request(self.group_id, member, partitions, table)
            response = await self._transport.coordinator(request, versions=table.versions)
            code, rows = committed_offsets(response, table)
        except TransportError as err:
            return CommittedLost(attempt, str(err))
        except Kip848Error as err:
            return CommittedImpossible(attempt, err)
        return CommittedAnswered(attempt, code, rows)
