"""aiokafka's client, reduced to what its fetcher needs: connections to leaders and their addresses.

Some things differ from aiokafka's own. Metadata comes from ``TopicDirectory``. Refreshes are
spaced by the retry backoff: the fetcher asks for one in every round in which a partition has no
leader, and aiokafka would send them as fast as they are answered. A partition whose fetch was
refused rests for the backoff, because the fetcher would otherwise ask again at once, for ever.
Connections are opened here: they are replaced before their login ends, and whatever a token
provider or a SASL library raises is a connection that could not be opened, not the end of fetching.
Nor is an answer with partitions that were not asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.errors import StaleMetadata
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.util import create_task

from kip848_client._aiokafka._connection import Connection, ConnectionOptions, open_connection
from kip848_client._aiokafka._errors import not_opened
from kip848_client._aiokafka._fetch_answer import sifted
from kip848_client._aiokafka._metadata import ClusterPicture, TopicDirectory, refresh_quietly
from kip848_client._types import TopicPartition

__all__ = ["FetchClient"]

_log = logging.getLogger("kip848_client")

_HANDLED_BY_FETCHER: Final = frozenset({0, 1, 29})
"""NONE, OFFSET_OUT_OF_RANGE and TOPIC_AUTHORIZATION_FAILED do not lead to a retry at once."""


class FetchClient(AIOKafkaClient):  # type: ignore[misc]  # aiokafka has no types
    """Give it a directory by ``follow`` before anything is fetched; ``close`` it at the end.

    ``on_refused`` is called with each partition whose fetch got an error that only waiting cures.
    """

    def __init__(
        self, options: ConnectionOptions, *, retry_backoff_ms: int, metadata_max_age_ms: int
    ) -> None:
        super().__init__(retry_backoff_ms=retry_backoff_ms, metadata_max_age_ms=metadata_max_age_ms)
        self._options = options
        self._opening: defaultdict[object, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._said_not_asked_for = False
        self._directory: TopicDirectory | None = None
        self._spacing_s = retry_backoff_ms / 1000
        self._refreshed_at_s = 0.0
        self.on_refused: Callable[[TopicPartition], None] = _ignore

    def follow(self, directory: TopicDirectory) -> None:
        """Refresh through ``directory`` from now on."""
        self._directory = directory
        self._sync_task = create_task(self._md_synchronizer())

    def show(self, picture: ClusterPicture) -> None:
        """Take a new picture of the cluster."""
        self.cluster.update_metadata(picture)

    async def _metadata_update(self, cluster_metadata: Any, topics: Any) -> bool:
        del cluster_metadata, topics  # the directory knows what is watched
        assert self._directory is not None
        loop = asyncio.get_running_loop()
        pause = self._refreshed_at_s + self._spacing_s - loop.time()
        if pause > 0:
            await asyncio.sleep(pause)
        self._refreshed_at_s = loop.time()
        return await refresh_quietly(self._directory)

    async def _get_conn(
        self,
        node_id: Any,
        *,
        group: ConnectionGroup = ConnectionGroup.DEFAULT,
        no_hint: bool = False,
    ) -> Connection | None:
        del no_hint  # aiokafka does not look at it, either
        key = (node_id, group)
        async with self._opening[key]:
            usable = self._usable(key)
            if usable is not None:
                return usable
            try:
                connection = self._conns[key] = await self._open(node_id)
            except Exception as err:  # noqa: BLE001 - it would end the fetcher; see ``not_opened``
                _log.warning("nothing is fetched: %s", not_opened(err, f"broker {node_id}"))
                self.force_metadata_update()
                return None
            return connection

    def _usable(self, key: Any) -> Connection | None:
        """The connection that is there. The fetcher has one request at a time with each broker, so
        one whose login is about to end has nothing pending and can go."""
        connection: Connection | None = self._conns.get(key)
        if connection is not None and (connection.is_due or not connection.connected()):
            del self._conns[key]
            connection.close(reason=CloseReason.IDLE_DROP)
            return None
        return connection

    async def _open(self, node_id: Any) -> Connection:
        broker = self.cluster.broker_metadata(node_id)
        if broker is None:
            raise StaleMetadata("it is not in the cluster's metadata any more")
        return await open_connection(
            broker.host, broker.port, self._options, self._on_connection_closed
        )

    async def send(
        self, node_id: Any, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        response = await super().send(node_id, request, group=group)
        if isinstance(request, FetchRequest):
            self._sift(node_id, request, response)
            self._look_for_refusals(response)
        return response

    def _sift(self, node_id: Any, request: FetchRequest, response: Any) -> None:
        response.topics, left_out = sifted(request.topics, response.topics)
        if left_out and not self._said_not_asked_for:
            self._said_not_asked_for = True
            _log.warning(
                "broker %s answered a Fetch with %s-%d, which was not asked for; it is ignored",
                node_id,
                *left_out[0],
            )

    def _look_for_refusals(self, response: Any) -> None:
        refused = False
        for topic, partitions in response.topics:
            for partition, error_code, *_ in partitions:
                if error_code not in _HANDLED_BY_FETCHER:
                    refused = True
                    self.on_refused(TopicPartition(topic, partition))
        if refused:
            self.force_metadata_update()


def _ignore(_tp: TopicPartition) -> None:
    """Until a fetch path is there."""
