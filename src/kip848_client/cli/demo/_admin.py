"""The few administrative requests of the demo, one connection each: topics, and burying a dead
member.

Only PLAINTEXT. Everything the demo does beside consuming and producing goes through here, so that
it runs against our broker and a real one in the same way.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final

from kip848_client.core.types import LEAVE_EPOCH
from kip848_client.core.wire import Framer, negotiate, read_response, request_api, write_request
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from kip848_client.error_codes import error_name
from kip848_client.errors import BootstrapFailed, broker_error

__all__ = ["Admin"]

_TIMEOUT_S: Final = 10.0
_CLIENT_ID: Final = "kip848-demo"
_GONE: Final = frozenset({0, 25, 69})
"""NONE, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND: in each case the member is not in the group."""


class Admin:
    """One connection to one broker; use it as ``async with``.

    Raises ``BootstrapFailed`` when the broker cannot be reached or goes away, ``BrokerError`` for
    what it refuses.
    """

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        if not host or not port.isdecimal():
            raise BootstrapFailed(f"{bootstrap!r} is not HOST:PORT")
        self._host, self._port = host, int(port)
        self._framer = Framer()
        self._correlation = 0
        self._ranges: dict[int, tuple[int, int]] = {}

    async def __aenter__(self) -> Admin:
        try:
            self._reader, self._writer = await asyncio.wait_for(
                asyncio.open_connection(self._host, self._port), _TIMEOUT_S
            )
            answer = await self._exchange(ApiVersionsRequest(), 0)
        except (OSError, TimeoutError, EOFError) as err:
            raise BootstrapFailed(f"no broker at {self._host}:{self._port}: {err}") from err
        self._ranges = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._writer.close()

    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with one replica a partition and wait until the broker says it is
        there."""
        topic = CreateTopicsRequestCreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        answer = await self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000))
        self._check(answer.topics[0].error_code, answer.topics[0].error_message, "CreateTopics")

    async def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        request = DeleteTopicsRequest(timeout_ms=10_000)
        if self._version(request) >= 6:
            request.topics = (DeleteTopicsRequestDeleteTopicState(name=name),)
        else:
            request.topic_names = (name,)
        answer = await self.ask(request)
        self._check(answer.responses[0].error_code, None, "DeleteTopics")

    async def bury(self, group_id: str, member_id: str) -> bool:
        """Take a member that is known to be dead out of its group, before its session expires.

        A heartbeat with epoch -1 in its name: the coordinator does not ask who sends it. Returns
        whether the member was still there.
        """
        found = await self.ask(
            FindCoordinatorRequest(key_type=0, coordinator_keys=(group_id,)), at_least=4
        )
        coordinator = found.coordinators[0]
        self._check(coordinator.error_code, coordinator.error_message, "FindCoordinator")
        leave = ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=LEAVE_EPOCH
        )
        async with Admin(f"{coordinator.host}:{coordinator.port}") as there:
            answer = await there.ask(leave)
        if answer.error_code not in _GONE:
            self._check(answer.error_code, answer.error_message, "ConsumerGroupHeartbeat")
        return bool(answer.error_code == 0)

    async def ask(self, request: Any, *, at_least: int = 0) -> Any:
        """Send a request in the highest common version; returns its response."""
        try:
            return await self._exchange(request, self._version(request, at_least))
        except (OSError, TimeoutError, EOFError) as err:
            raise BootstrapFailed(f"{self._host}:{self._port} went away: {err}") from err

    def _version(self, request: Any, at_least: int = 0) -> int:
        api = request_api(request)
        return negotiate(api, self._ranges.get(api.key), at_least=at_least)

    async def _exchange(self, request: Any, version: int) -> Any:
        self._correlation += 1
        self._writer.write(write_request(request, version, self._correlation, _CLIENT_ID))
        async with asyncio.timeout(_TIMEOUT_S):
            while True:
                chunk = await self._reader.read(65536)
                if not chunk:
                    raise EOFError("connection closed")
                frames = self._framer.feed(chunk)
                if frames:
                    return read_response(frames[0], request_api(request), version)[1]

    @staticmethod
    def _check(code: int, message: str | None, api: str) -> None:
        if code:
            raise broker_error(code, error_name(code), message, api=api)
