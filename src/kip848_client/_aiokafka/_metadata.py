"""Topic ids, names and leaders, and how they reach aiokafka's cluster view.

aiokafka asks for metadata in a version that has no topic ids, and for *all* topics when it tracks
none. So its client's refresh is replaced: ``TopicDirectory`` asks with Metadata v12, which answers
for ids as well as for names (KIP-516), keeps the result, and hands aiokafka's ``ClusterMetadata``
a picture of the watched topics. There is one refresh policy and one source of leaders.

An id keeps its name for ever, a name changes its id when the topic is created again. So ids are
kept even when they are gone from the cluster, as long as their name is asked for (a partition of a
deleted topic still has to be revoked under its name), and a name points at the newest id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client._ports import Transport, VersionLimits
from kip848_client._types import ZERO_TOPIC_ID, TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import Kip848Error
from kip848_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)

__all__ = ["ClusterPicture", "TopicDirectory", "refresh_quietly"]

_log = logging.getLogger("kip848_client")

_VERSIONS: Final[VersionLimits] = (12, 32767)
"""Version 12 lets a request name topics by id."""

BrokerRow = tuple[int, str, int, str | None]
PartitionRow = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]
TopicRow = tuple[int, str, bool, list[PartitionRow]]


@dataclass(frozen=True, slots=True)
class ClusterPicture:
    """What aiokafka's ``ClusterMetadata.update_metadata`` reads of a Metadata answer, in the
    shape of version 1."""

    brokers: list[BrokerRow]
    topics: list[TopicRow]
    controller_id: int
    API_VERSION: int = 1


class TopicDirectory:
    """See ``kip848_client._ports.TopicView``.

    ``learn_brokers`` gets every new list of brokers (node id, host, port), ``show`` every new
    picture of the watched topics.
    """

    def __init__(
        self,
        transport: Transport,
        learn_brokers: Callable[[list[tuple[int, str, int]]], None],
        show: Callable[[ClusterPicture], None],
        *,
        allow_auto_create: bool,
    ) -> None:
        self._transport = transport
        self._learn_brokers = learn_brokers
        self._show = show
        self._allow_auto_create = allow_auto_create
        self._wanted: frozenset[str] = frozenset()
        self._watched: set[str] = set()
        self._names: dict[TopicId, str] = {}
        self._topics: dict[str, MetadataResponseTopic] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._complained: set[str] = set()
        self._asked_to_create: set[str] = set()
        self._asking: asyncio.Lock = asyncio.Lock()

    def name_of(self, topic_id: TopicId) -> str | None:
        return self._names.get(topic_id)

    def id_of(self, topic: str) -> TopicId | None:
        known = self._topics.get(topic)
        if known is None or known.topic_id == ZERO_TOPIC_ID:
            return None
        return TopicId(known.topic_id)

    def leader_of(self, tp: TopicPartition) -> int | None:
        leader = self._leaders.get(tp, -1)
        return None if leader < 0 else leader

    def partitions_of(self, topic: str) -> frozenset[int] | None:
        known = self._topics.get(topic)
        if known is None:
            return None
        return frozenset(each.partition_index for each in known.partitions)

    def want(self, topics: Collection[str]) -> None:
        self._wanted = frozenset(topics)
        self._asked_to_create &= self._wanted

    def watch(self, topics: Collection[str]) -> None:
        self._watched |= set(topics)

    def retain(self, topics: Collection[str]) -> None:
        self._watched &= set(topics)

    async def resolve(self, topic_ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        wanted = tuple(topic_ids)
        missing = tuple(each for each in wanted if each not in self._names)
        if missing:
            topics = tuple(MetadataRequestTopic(topic_id=each, name=None) for each in missing)
            answer = await self._ask(topics)
            self._take(answer)
        return {each: self._names[each] for each in wanted if each in self._names}

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        async with self._asking:
            names = self._wanted | self._watched | set(topics)
            self._forget_all_but(names)
            # What may be created by asking are names that the user gave us, each once. They are
            # asked for alone: a refresh must not bring back what someone has just deleted.
            new = self._wanted - self._asked_to_create if self._allow_auto_create else frozenset()
            if new:
                self._take(await self._ask(_named(new), create=True))
                self._asked_to_create |= new
            if names - new or not new:
                self._take(await self._ask(_named(names - new)))

    async def list_topics(self) -> tuple[MetadataResponseTopic, ...]:
        answer = await self._ask(None)
        return tuple(topic for topic in answer.topics if topic.error_code == 0)

    async def _ask(
        self, topics: tuple[MetadataRequestTopic, ...] | None, *, create: bool = False
    ) -> MetadataResponse:
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        answer: MetadataResponse = await self._transport.any_broker(request, versions=_VERSIONS)
        return answer

    def _forget_all_but(self, names: Collection[str]) -> None:
        """Topics come and go; what is not asked for any more must not pile up."""
        for name in [each for each in self._topics if each not in names]:
            self._drop_leaders(name)
        self._complained &= set(names)
        self._names = {each: name for each, name in self._names.items() if name in names}

    def _take(self, answer: MetadataResponse) -> None:
        for topic in answer.topics:
            if topic.name is None:
                continue  # an id that the cluster does not know (any more)
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
                self._drop(topic.name, topic.error_code)
                continue
            self._complained.discard(topic.name)
            self._topics[topic.name] = topic
            if topic.topic_id != ZERO_TOPIC_ID:
                self._names[TopicId(topic.topic_id)] = topic.name
            for partition in topic.partitions:
                self._leaders[topic.name, partition.partition_index] = partition.leader_id
        if answer.brokers:
            self._learn_brokers([(each.node_id, each.host, each.port) for each in answer.brokers])
            self._show(self._picture(answer))

    def _drop(self, name: str, error_code: int) -> None:
        """Forget where a topic's partitions are. Said once, until the topic is there again: a
        subscription may well name a topic that is yet to be created."""
        self._drop_leaders(name)
        if name not in self._complained:
            self._complained.add(name)
            said = error_name(error_code)
            _log.warning("topic %s: %s; it is consumed once that is cured", name, said)

    def _drop_leaders(self, name: str) -> None:
        gone = self._topics.pop(name, None)
        for partition in () if gone is None else gone.partitions:
            self._leaders.pop((name, partition.partition_index), None)

    def _picture(self, answer: MetadataResponse) -> ClusterPicture:
        topics: list[TopicRow] = [
            (
                0,
                name,
                topic.is_internal,
                [
                    (
                        each.error_code,
                        each.partition_index,
                        each.leader_id,
                        each.replica_nodes,
                        each.isr_nodes,
                    )
                    for each in topic.partitions
                ],
            )
            for name, topic in self._topics.items()
        ]
        brokers = [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers]
        return ClusterPicture(brokers, topics, answer.controller_id)


def _named(names: Iterable[str]) -> tuple[MetadataRequestTopic, ...]:
    return tuple(MetadataRequestTopic(name=name) for name in sorted(names))


async def refresh_quietly(directory: TopicDirectory) -> bool:
    """Refresh for aiokafka's synchroniser, which an exception would end for good."""
    try:
        await directory.refresh()
    except Kip848Error as err:
        _log.warning("metadata could not be refreshed: %s", err)
        return False
    except Exception:  # noqa: BLE001 - whatever it is, leaders have to be learnt again
        _log.exception("metadata could not be refreshed; it is tried again")
        return False
    return True
