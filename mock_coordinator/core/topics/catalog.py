"""The topics of a broker: by name and by id, with the changes since the last step.

A topic's identity is its id: deleting a topic and creating one of the same name gives another
topic. The catalog has no callbacks. It collects changes, and the core takes them once after each
step (``take_changes``) and passes them on, so that no handler runs inside another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kip848_client.core.types import ZERO_TOPIC_ID, TopicId

__all__ = ["Catalog", "CatalogChanges", "Topic"]


@dataclass(slots=True)
class Topic:
    """One topic. ``config`` holds only what was set for it; ``created_ms`` is for people;
    ``placement`` is where its first partition went, counted round the brokers."""

    name: str
    topic_id: TopicId
    partitions: int
    config: dict[str, str] = field(default_factory=dict)
    internal: bool = False
    created_ms: int = 0
    placement: int = 0


@dataclass(frozen=True, slots=True)
class CatalogChanges:
    """What changed: ``names`` of all topics created, grown or deleted, in order of change and
    without repetition; ``deleted`` topics as they were."""

    names: tuple[str, ...]
    deleted: tuple[Topic, ...]


def _no_racks(_topic: Topic) -> tuple[tuple[str, ...], ...]:
    return ()


class Catalog:
    """All topics, in order of creation."""

    def __init__(self) -> None:
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[TopicId, Topic] = {}
        self._changed: dict[str, None] = {}
        self._deleted: list[Topic] = []
        self._names_by_id: tuple[int, Mapping[TopicId, str]] = 0, {}
        self.version = 0
        """Grows with every change; a cheap test for "has anything happened"."""
        self.created_version = 0
        """``version`` when a topic was last created: regexes are resolved again because of it."""
        self.racks_of: Callable[[Topic], tuple[tuple[str, ...], ...]] = _no_racks
        """The racks of the replicas of each partition; fewer entries than partitions are repeated.
        The placement on nodes says so."""

    def topic(self, name: str) -> Topic | None:
        """By name."""
        return self._by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> Topic | None:
        """By id."""
        return self._by_id.get(TopicId(topic_id))

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics by name, in order of creation."""
        return self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._by_name))

    @property
    def names_by_id(self) -> Mapping[TopicId, str]:
        """All names by id as they are now; after a change there is another mapping."""
        version, names = self._names_by_id
        if version != self.version:
            names = {topic_id: topic.name for topic_id, topic in self._by_id.items()}
            self._names_by_id = self.version, names
        return names

    def create(
        self,
        name: str,
        partitions: int,
        topic_id: TopicId,
        *,
        config: Mapping[str, str] | None = None,
        internal: bool = False,
        created_ms: int = 0,
    ) -> Topic:
        """Add a topic. Raises ``ValueError`` when the name or the id is taken, or the id is
        zero."""
        if name in self._by_name:
            raise ValueError(f"Topic '{name}' already exists.")
        if topic_id == ZERO_TOPIC_ID or topic_id in self._by_id:
            raise ValueError(f"topic id {topic_id.hex()} is zero or in use")
        topic = Topic(name, topic_id, partitions, dict(config or {}), internal, created_ms)
        self._by_name[name] = topic
        self._by_id[topic_id] = topic
        self._note(name)
        self.created_version = self.version
        return topic

    def delete(self, name: str) -> Topic:
        """Remove a topic and return it as it was. Raises ``KeyError`` when there is none."""
        topic = self._by_name.pop(name)
        del self._by_id[topic.topic_id]
        self._deleted.append(topic)
        self._note(name)
        return topic

    def grow(self, name: str, partitions: int) -> None:
        """Raise the number of partitions. Raises ``ValueError`` when it would not rise."""
        topic = self._by_name[name]
        if partitions <= topic.partitions:
            raise ValueError(f"{name} has {topic.partitions} partitions already, not {partitions}")
        topic.partitions = partitions
        self._note(name)

    def take_changes(self) -> CatalogChanges | None:
        """What changed since the last call; ``None`` when nothing did."""
        if not self._changed:
            return None
        changes = CatalogChanges(tuple(self._changed), tuple(self._deleted))
        self._changed = {}
        self._deleted = []
        return changes

    def _note(self, name: str) -> None:
        self.version += 1
        self._changed[name] = None
