"""Stands in for the coordinator of aiokafka's consumer.

Each request to the group's coordinator passes through the method by which aiokafka makes such
requests (``_do_heartbeat``, ``_do_commit_offsets``, ``_do_fetch_commit_offsets``), then
``_send_req``, then the client's ``send``. Code that wraps one of them sees the request, and its
errors take effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from typing import Any, Final

from kip848_client.aiokafka._adapters import ConsumerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._parents import ConnectionGroup, errors
from kip848_client.aiokafka._request_shims import RequestShim
from kip848_client.aiokafka.errors import Translating, translated
from kip848_client.aiokafka.structs import OffsetAndMetadata, TopicPartition
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.error_codes import ErrorCode

__all__ = ["Coordinator"]

_translating: Final = Translating()
_due: Final[ContextVar[RequestShim | None]] = ContextVar("kip848_client_due", default=None)
"""The request for which a method of aiokafka's was called."""

_SETTINGS: Final = (
    "_session_timeout_ms",
    "_heartbeat_interval_ms",
    "_retry_backoff_ms",
    "_enable_auto_commit",
    "_auto_commit_interval_ms",
    "_exclude_internal_topics",
)
"""The settings of the program, including those that the group's coordinator decides."""


class Coordinator:
    """The membership, for aiokafka's methods and for code that reads their private parts."""

    _session_timeout_ms: int
    _heartbeat_interval_ms: int
    _retry_backoff_ms: int
    _enable_auto_commit: bool
    _auto_commit_interval_ms: int
    _exclude_internal_topics: bool

    def __init__(
        self,
        inner: ConsumerAdapter,
        client: LinkedClient,
        group_id: str | None,
        settings: Mapping[str, Any],
        is_rejoining: Callable[[], bool],
    ) -> None:
        self._inner = inner
        self._is_rejoining = is_rejoining
        self._client = client
        inner.go_through(client, translated, self.send)
        vars(self).update({name: settings[name] for name in _SETTINGS})
        self.group_id = group_id
        self._metadata_snapshot: dict[str, int] = {}

    @property
    def coordinator_id(self) -> int | None:
        """The broker that coordinates the group, ``None`` while it is not known."""
        return self._inner.coordinator_node

    @property
    def member_id(self) -> str:
        """Our member id, chosen before the join."""
        member = self._inner.member
        return "" if member is None else member.member_id

    @property
    def generation(self) -> int:
        """The member epoch, -1 outside of the group."""
        member = self._inner.member
        return -1 if member is None else member.member_epoch

    @property
    def _rejoin_needed_fut(self) -> asyncio.Future[None]:
        """Done between the calls of ``on_partitions_revoked`` and ``on_partitions_assigned``. It
        is only informative: setting it has no effect."""
        needed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._is_rejoining():
            needed.set_result(None)
        return needed

    def check_errors(self) -> None:
        """Raise the error that ended the membership."""
        if not self._inner.was_started:
            raise errors.IllegalStateError(
                "the consumer is not started; call start() or use 'async with'"
            )
        with _translating:
            self._inner.check()

    async def commit_offsets(self, assignment: object, offsets: Mapping[Any, Any]) -> None:
        """Commit, or raise ``CommitFailedError``."""
        everything = getattr(assignment, "everything", None)
        with _translating:
            await self._inner.commit(None if offsets is everything else offsets)

    async def fetch_committed_offsets(self, partitions: Collection[Any]) -> dict[Any, Any]:
        """The committed offsets, without partitions that have none."""
        found: dict[Any, Any] = {}
        with _translating:
            for tp in partitions:
                offset = await self._inner.committed(tp)
                if offset is not None:
                    found[tp] = OffsetAndMetadata(offset, "")
        return found

    def start_commit_offsets_refresh_task(self, assignment: object) -> None:
        """Nothing to do: our consumer looks up committed offsets."""

    def maybe_leave_group(self) -> None:
        """Nothing to do: ``unsubscribe`` does it."""

    async def close(self) -> None:
        """The consumer's ``stop`` closes everything."""

    # -- requests --------------------------------------------------------------------------------

    async def send(self, shim: RequestShim) -> None:
        """Send a request of ours through aiokafka's method for its kind."""
        token = _due.set(shim)
        try:
            await self._by_its_method(shim.request)
        finally:
            _due.reset(token)

    async def _by_its_method(self, request: Any) -> None:
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            await self._do_heartbeat()
        elif isinstance(request, OffsetCommitRequest):
            offsets = {
                TopicPartition(topic.name, each.partition_index): OffsetAndMetadata(
                    each.committed_offset, each.committed_metadata or ""
                )
                for topic in request.topics
                for each in topic.partitions
            }
            await self._do_commit_offsets(None, offsets)
        elif isinstance(request, OffsetFetchRequest):
            await self._do_fetch_commit_offsets(
                [
                    TopicPartition(topic.name, number)
                    for group in request.groups
                    for topic in group.topics or ()
                    for number in topic.partition_indexes
                ]
            )
        else:
            await self._send_due()

    async def _do_heartbeat(self) -> bool:
        """Send a heartbeat if it is due. Returns whether we are a member."""
        answer = await self._send_due()
        return answer is None or answer.error_code == ErrorCode.NONE

    async def _do_commit_offsets(self, _assignment: object, offsets: Mapping[Any, Any]) -> None:
        """One request for a commit."""
        if _due.get() is None:
            with _translating:
                await self._inner.commit(offsets)
        else:
            await self._send_due()

    async def _do_fetch_commit_offsets(self, partitions: Collection[Any]) -> dict[Any, Any]:
        """Send one request for committed offsets."""
        shim = _due.get()
        if shim is None:
            return await self.fetch_committed_offsets(partitions)
        answer = await self._send_due()
        asked = {t.topic_id: t.name for g in shim.request.groups for t in g.topics or ()}
        return {
            TopicPartition(
                topic.name or asked.get(topic.topic_id, ""), each.partition_index
            ): OffsetAndMetadata(each.committed_offset, each.metadata or "")
            for group in getattr(answer, "groups", ())
            for topic in group.topics
            for each in topic.partitions
            if each.error_code == ErrorCode.NONE and each.committed_offset >= 0
        }

    async def _send_due(self) -> Any:
        """Send the request for which the method was called; without one, do nothing."""
        shim = _due.get()
        if shim is None:
            return None
        _due.set(None)
        shim.returned = await self._send_req(shim)
        return shim.returned

    async def _send_req(self, request: Any) -> Any:
        """Send something to the coordinator."""
        return await self._client.send(
            self.coordinator_id, request, group=ConnectionGroup.COORDINATION
        )
