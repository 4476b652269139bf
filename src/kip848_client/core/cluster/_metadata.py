"""Decides when to request metadata, and for which topics: one request at a time.

A topic is requested when a caller *wants* it, and all watched topics when their metadata is old.
There is a pause between requests, which grows while they bring nothing. A topic that was never
requested before does not wait for it, so that a new assignment starts at once.

A request may create a topic if the caller allows it each time. A request because of old metadata
creates nothing; otherwise it would bring back a deleted topic.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.cluster._commands import LearnLeaders
from kip848_client.core.cluster._model import MetadataSettings
from kip848_client.core.types import TopicId

__all__ = ["MetadataQuestions"]


@dataclass(slots=True)
class _Watched:
    topic_id: TopicId | None
    by_name: bool = False
    """Also request by name: the id is gone, and the name may have another one."""


class MetadataQuestions:
    """Which topics to request."""

    def __init__(self, settings: MetadataSettings, jitter: Jitter) -> None:
        self._settings = settings
        self._jitter = jitter
        self._watched: dict[str, _Watched] = {}
        self._wanted: dict[str, str] = {}
        """Topics to request, with the reason."""
        self._to_create: set[str] = set()
        """Those of them that may be created."""
        self._asking: dict[str, str] = {}
        """The same for the open request."""
        self._asked: set[str] = set()
        """Topics that were requested at least once."""
        self._urgent = False
        self._open: int | None = None
        self._number = 0
        self._failures = 0
        self._not_before_ms = 0
        self._refresh_ms: int | None = None

    # -- watched topics ----------------------------------------------------------------------

    def watch(self, topic: str, topic_id: TopicId | None) -> None:
        """Keep the metadata of this topic fresh; ``None`` to request it by name until it has an
        id."""
        watched = self._watched.get(topic)
        if watched is None or watched.topic_id != topic_id:
            self._watched[topic] = _Watched(topic_id)
            self._asked.discard(topic)
        else:
            watched.by_name = False

    def unwatch(self, topic: str) -> None:
        """This topic is not needed any more."""
        self._watched.pop(topic, None)
        self._wanted.pop(topic, None)
        self._asked.discard(topic)

    def ask_by_name_too(self, topic: str) -> None:
        """The cluster does not know its id. Another topic of the same name may exist."""
        watched = self._watched.get(topic)
        if watched is not None:
            watched.by_name = True

    def want(self, topic: str, why: str, *, create: bool = False) -> None:
        """Request this topic as soon as possible; an open request may be enough. ``create``: the
        next request may create it."""
        if topic in self._asking:
            return
        self._wanted.setdefault(topic, why)
        if create:
            self._to_create.add(topic)
        if topic not in self._asked:
            self._urgent = True

    def want_all(self, why: str) -> None:
        """Request everything that is watched."""
        for topic in self._watched:
            self._wanted.setdefault(topic, why)

    def begin_anew(self) -> None:
        """The client restarted: abandon the open request, whose brokers do not count any more, and
        request everything that is watched."""
        self._open = None
        self._asking = {}
        self._failures = 0
        self._urgent = True
        self.want_all("the client restarted from its bootstrap servers")

    # -- requests ----------------------------------------------------------------------------

    @property
    def watched(self) -> Collection[str]:
        """The topics that are watched."""
        return self._watched.keys()

    def due_ms(self) -> int | None:
        """When to send the next request; ``None`` if there is none or one is open."""
        if self._open is not None:
            return None
        if self._wanted:
            return 0 if self._urgent else self._not_before_ms
        return self._refresh_ms if self._watched else None

    def ask(self, now_ms: int) -> LearnLeaders | None:
        """The next request if it is due."""
        due_ms = self.due_ms()
        if due_ms is None or now_ms < due_ms:
            return None
        if not self._wanted:
            self.want_all("what is known of leaders is old")
        ids: set[TopicId] = set()
        names: set[str] = set()
        for topic in self._wanted:
            watched = self._watched.get(topic)
            if watched is not None and watched.topic_id is not None:
                ids.add(watched.topic_id)
            if watched is None or watched.topic_id is None or watched.by_name:
                names.add(topic)
        self._asked.update(self._wanted)
        why = next(iter(self._wanted.values()))
        self._asking, self._wanted = self._wanted, {}
        self._urgent = False
        self._number += 1
        self._open = self._number
        self._not_before_ms = now_ms + self._pause_ms()
        to_create = frozenset(self._to_create & names)
        self._to_create.clear()
        return LearnLeaders(self._number, frozenset(ids), frozenset(names), why, to_create)

    def answered(self, now_ms: int, number: int) -> Collection[str] | None:
        """An answer arrived. Returns the requested topics, or ``None`` if that request is not open
        any more."""
        if number != self._open:
            return None
        asked, self._asking = self._asking, {}
        self._open = None
        self._refresh_ms = now_ms + self._settings.max_age_ms
        return asked.keys()

    def judged(self) -> None:
        """The answer was evaluated. Topics that are still wanted were requested in vain."""
        self._failures = self._failures + 1 if self._wanted else 0

    def lost(self, now_ms: int, number: int) -> bool:
        """No broker answered: request all of it again later."""
        if number != self._open:
            return False
        self._open = None
        self._failures += 1
        self._urgent = False
        self._not_before_ms = now_ms + self._pause_ms()
        self._wanted = {**self._asking, **self._wanted}
        self._asking = {}
        return True

    def _pause_ms(self) -> int:
        settings = self._settings
        return backoff_ms(
            self._failures, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._jitter
        )
