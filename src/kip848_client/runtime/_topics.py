"""Topics by name and id, and the metadata about them.

``TopicDirectory`` uses Metadata v12 or newer, which answers for ids as well as for names (KIP-516).
Leaders go to the core, whatever caused the request; the directory keeps ids, names and partitions.

There are two ways to use it. A core requests what it needs (``look_up``). Or the client names the
topics it needs (``want``, ``watch``), and ``run`` keeps them up to date; a client without such
topics runs it, too: brokers come and go.

An id never changes its name, but a name changes its id when the topic is recreated. So ids are kept
even after they are gone from the cluster, as long as their name is in use (releasing a partition of
a deleted topic still needs the name), and a name refers to the newest id.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

import anyio

from kip848_client.core.cluster import (
    METADATA_VERSIONS,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    leaders_learnt,
    learnt_together,
    metadata_request,
    questions_of,
)
from kip848_client.core.ports import Clock, ConnectionBroken, Transport
from kip848_client.core.recovery import Recovery
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, Wait
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import Kip848Error, RemoteProtocolError, TransportError
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime._waits import ANNOUNCED_AFTER_MS

__all__ = ["TopicDirectory"]

_log = logging.getLogger("kip848_client")

_NEWS_FOR_MS: Final = 10_000
"""How long an answer received before the core wanted it can be used instead of a request."""
_SAY_AGAIN_MS: Final = 60_000
"""Minimum time between two log lines about a lasting problem."""


class TopicDirectory:
    """See ``kip848_client.core.ports.TopicView``. Run ``run`` in a task.

    ``learnt`` gets the leaders in each answer, ``rebootstrapped`` is called when all earlier
    answers have become invalid (KIP-1102). ``fields`` are added to every log line and identify the
    client.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        learnt: Callable[[LeadersLearnt], None],
        rebootstrapped: Callable[[], None],
        *,
        allow_auto_create: bool,
        recovery: Recovery,
        backoff: Backoff,
        max_age_ms: int,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self._fields = dict(fields or {})
        self._transport = transport
        self._clock = clock
        self._learnt = learnt
        self._rebootstrapped = rebootstrapped
        self._allow_auto_create = allow_auto_create
        self._recovery = recovery
        self._backoff = backoff
        self._max_age_s = max_age_ms / 1000
        self._beginnings = 0
        self.cluster_id: str | None = None
        """The cluster id in the latest answer."""
        self._wanted: frozenset[str] = frozenset()
        self._watched: set[str] = set()
        self._names: dict[TopicId, str] = {}
        self._topics: dict[str, tuple[TopicId, frozenset[int]]] = {}
        """Id and partitions by name."""
        self._unheard: dict[TopicId, tuple[int, MetadataResponse]] = {}
        """Time and answer for topics that were not watched: the core did not keep it, and may
        request it in a moment."""
        self._complained: dict[str, tuple[int, str]] = {}
        self._said_ms: int | None = None
        """When unavailable metadata was last logged; ``None``: it is available."""
        self._asked_to_create: set[str] = set()
        self._asking: asyncio.Lock = asyncio.Lock()
        self._soon: asyncio.Event = asyncio.Event()

    # -- views -------------------------------------------------------------------------------

    def name_of(self, topic_id: TopicId) -> str | None:
        return self._names.get(topic_id)

    def id_of(self, topic: str) -> TopicId | None:
        known = self._topics.get(topic)
        return None if known is None or known[0] == ZERO_TOPIC_ID else known[0]

    def partitions_of(self, topic: str) -> frozenset[int] | None:
        known = self._topics.get(topic)
        return None if known is None else known[1]

    # -- topics kept up to date --------------------------------------------------------------

    def want(self, topics: Collection[str]) -> None:
        self._wanted = frozenset(topics)
        self._asked_to_create &= self._wanted

    def problems(self) -> tuple[str, ...]:
        """Describe the topics that the client has waited for for more than a second, with the
        reason."""
        now_ms = self._clock.now_ms()
        return tuple(
            Wait(said, since_ms).goes_on(now_ms, f"topic {name}")
            for name, (since_ms, said) in sorted(self._complained.items())
            if now_ms - since_ms >= ANNOUNCED_AFTER_MS
        )

    def watch(self, topics: Collection[str]) -> None:
        self._watched |= set(topics)

    def retain(self, topics: Collection[str]) -> None:
        self._watched &= set(topics)

    def refresh_soon(self) -> None:
        self._soon.set()

    async def run(self) -> None:
        """Keep wanted and watched topics up to date, until cancelled."""
        failures = 0
        while True:
            if failures:
                await anyio.sleep(self._backoff.pause_s(failures))
            else:
                with anyio.move_on_after(self._max_age_s):
                    await self._soon.wait()
            self._soon.clear()
            failures = 0 if await self._refresh_quietly() else failures + 1

    async def _refresh_quietly(self) -> bool:
        try:
            await self.refresh()
        except Kip848Error as err:
            now_ms = self._clock.now_ms()
            if self._said_ms is None or now_ms - self._said_ms >= _SAY_AGAIN_MS:
                self._said_ms = now_ms
                text = "metadata could not be refreshed: %s. Retrying."
                _log.warning(text, err, extra=self._fields)
            return False
        self._said_ms = None
        return True

    # -- asking ------------------------------------------------------------------------------

    async def resolve(self, topic_ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        wanted = tuple(topic_ids)
        missing = tuple(each for each in wanted if each not in self._names)
        if missing:
            self._take(await self._ask(_by_id(missing)))
        return {each: self._names[each] for each in wanted if each in self._names}

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        async with self._asking:
            names = self._wanted | self._watched | set(topics)
            self._forget_all_but(names)
            # Only names given by the user may be auto-created, each once. They are requested alone:
            # a refresh must not recreate a topic that was just deleted.
            new = self._wanted - self._asked_to_create if self._allow_auto_create else frozenset()
            if new:
                self._take(await self._ask(_by_name(new), create=True))
                self._asked_to_create |= new
            if names - new or not new:
                self._take(await self._ask(_by_name(names - new)))

    async def look_up(self, wanted: LearnLeaders) -> LeadersLearnt | LeadersNotLearnt:
        """Request the topics that the core wants. Only topics named by the core are auto-created,
        if the user allows it."""
        known = self._told_before(wanted)
        if known is not None:
            return known
        if not self._allow_auto_create:
            wanted = replace(wanted, to_create=frozenset())
        answers: list[LeadersLearnt] = []
        for question in questions_of(wanted):
            try:
                answer = await self._send(metadata_request(question))
            except Kip848Error as err:
                return LeadersNotLearnt(wanted.number, str(err))
            self._note(answer)
            answers.append(leaders_learnt(answer, question))
        return learnt_together(wanted.number, answers)

    def _told_before(self, wanted: LearnLeaders) -> LeadersLearnt | None:
        """Return a recent answer, if there is one; each is used once."""
        oldest_ms = self._clock.now_ms() - _NEWS_FOR_MS
        told = [self._unheard.pop(each, (0, None)) for each in sorted(wanted.topic_ids)]
        answers = [answer for at_ms, answer in told if answer is not None and at_ms >= oldest_ms]
        if wanted.topics or not told or len(answers) < len(told):
            return None
        learnt = [leaders_learnt(each) for each in answers]
        topics = {each.topic_id: each for one in learnt for each in one.topics}
        return LeadersLearnt(
            wanted.number,
            tuple(topics[each] for each in sorted(wanted.topic_ids)),
            frozenset(),
            learnt[-1].nodes,
        )

    async def list_topics(self) -> tuple[MetadataResponseTopic, ...]:
        answer = await self._ask(None)
        return tuple(topic for topic in answer.topics if topic.error_code == 0)

    async def _ask(
        self, topics: tuple[MetadataRequestTopic, ...] | None, *, create: bool = False
    ) -> MetadataResponse:
        return await self._send(MetadataRequest(topics=topics, allow_auto_topic_creation=create))

    async def _send(self, request: MetadataRequest) -> MetadataResponse:
        """Send a request. Raises ``TransportError`` and ``BrokerError``; an unusable answer counts
        as none."""
        beginning = self._beginnings
        self._recovery.asked(self._clock.now_ms())
        try:
            answer: MetadataResponse = await self._transport.any_broker(
                request, versions=METADATA_VERSIONS
            )
        except TransportError as err:
            await self._was_unusable(beginning, err)
            raise
        if beginning != self._beginnings:
            raise ConnectionBroken(
                "Metadata: the client restarted from its bootstrap servers meanwhile"
            )
        if answer.error_code == ErrorCode.REBOOTSTRAP_REQUIRED and self._recovery.required():
            await self._begin_anew("a broker says that this is not its cluster any more")
            raise ConnectionBroken("Metadata: the client starts over from its bootstrap servers")
        if answer.error_code or not answer.brokers:
            said = error_name(answer.error_code) if answer.error_code else "it names no brokers"
            unusable = RemoteProtocolError(f"Metadata: {said}", hint="it is asked for again")
            await self._was_unusable(beginning, unusable)
            raise unusable
        self._recovery.usable()
        return answer

    async def _was_unusable(self, beginning: int, why: Kip848Error) -> None:
        if beginning == self._beginnings and self._recovery.failed(self._clock.now_ms()):
            await self._begin_anew(str(why))

    async def _begin_anew(self, why: str) -> None:
        text = "the client starts over from its bootstrap servers: %s"
        _log.warning(text, why, extra=self._fields)
        self._beginnings += 1
        self._unheard.clear()
        await self._transport.begin_anew()
        self._rebootstrapped()
        self.refresh_soon()

    # -- taking in ---------------------------------------------------------------------------

    def _take(self, answer: MetadataResponse) -> None:
        self._note(answer)
        for topic in answer.topics:
            if topic.name and not topic.error_code and topic.name not in self._watched:
                self._unheard[TopicId(topic.topic_id)] = (self._clock.now_ms(), answer)
        self._learnt(leaders_learnt(answer))

    def _note(self, answer: MetadataResponse) -> None:
        self.cluster_id = answer.cluster_id
        self._transport.learn_brokers([(e.node_id, e.host, e.port) for e in answer.brokers])
        for topic in answer.topics:
            if not topic.name:
                continue  # an id that is (no longer) known to the cluster
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
                self._drop(topic.name, topic.error_code)
                continue
            complaint = self._complained.pop(topic.name, None)
            if complaint is not None:
                fields = {**self._fields, "topic": topic.name}
                _log.info("topic %s exists now", topic.name, extra=fields)
            numbers = frozenset([each.partition_index for each in topic.partitions])
            self._topics[topic.name] = (TopicId(topic.topic_id), numbers)
            if topic.topic_id != ZERO_TOPIC_ID:
                self._names[TopicId(topic.topic_id)] = topic.name

    def _drop(self, name: str, error_code: int) -> None:
        """Forget the partitions of a topic. Logged once, until the topic exists again: a
        subscription may well name a topic that is yet to be created."""
        self._topics.pop(name, None)
        if name not in self._complained and (name in self._wanted or name in self._watched):
            said = error_name(error_code)
            self._complained[name] = self._clock.now_ms(), said
            text = "topic %s: %s; it is asked for again until that is cured"
            _log.warning(text, name, said, extra={**self._fields, "topic": name})

    def _forget_all_but(self, names: Collection[str]) -> None:
        """Forget all other topics, so that unused ones do not pile up."""
        self._topics = {name: each for name, each in self._topics.items() if name in names}
        self._names = {each: name for each, name in self._names.items() if name in names}
        self._complained = {name: each for name, each in self._complained.items() if name in names}
        self._unheard = {each: told for each, told in self._unheard.items() if each in self._names}


def _by_name(names: Iterable[str]) -> tuple[MetadataRequestTopic, ...]:
    return tuple(MetadataRequestTopic(name=name) for name in sorted(names))


def _by_id(topic_ids: Iterable[TopicId]) -> tuple[MetadataRequestTopic, ...]:
    return tuple(MetadataRequestTopic(topic_id=each, name=None) for each in topic_ids)
