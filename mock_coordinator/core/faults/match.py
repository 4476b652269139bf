"""Which requests a fault hits.

Requests mention groups, members, topics and partitions at any depth. ``mentions`` finds them by the
names of Kafka's fields, so new messages need no code here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.wire import APIS
from mock_coordinator.core.inputs import RequestReceived

__all__ = ["Match", "Mentions", "mentions"]

_GROUPS: Final = frozenset({"group_id", "groups_names", "group_ids", "groups", "coordinator_keys"})
_TRANSACTIONAL_IDS: Final = frozenset(
    {"transactional_id", "transactional_ids", "v3_and_below_transactional_id"}
)
_MEMBERS: Final = frozenset({"member_id"})
_PARTITIONS: Final = frozenset({"partition", "partition_index", "index", "partitions"})
_PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
_TOPICS: Final = frozenset({"topic", "topic_name"})
_TOPIC_LISTS: Final = frozenset({"topic_names", "subscribed_topic_names"})


@dataclass(slots=True)
class Mentions:
    """The names in a request. ``partitions`` are (topic, partition)."""

    groups: set[str] = field(default_factory=set[str])
    transactional_ids: set[str] = field(default_factory=set[str])
    members: set[str] = field(default_factory=set[str])
    topics: set[str] = field(default_factory=set[str])
    partitions: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])


def mentions(request: Any, topic_names: Mapping[bytes, str]) -> Mentions:
    """The groups, members, topics and partitions in a request. ``topic_names`` maps topic ids to
    names."""
    found = Mentions()
    for topic, name, value in _walk(request, None, topic_names):
        if topic is not None:
            found.topics.add(topic)
        if name in _GROUPS:
            found.groups.update(_texts(value))
        elif name in _TRANSACTIONAL_IDS:
            found.transactional_ids.update(filter(None, _texts(value)))
        elif name in _MEMBERS:
            found.members.update(_texts(value))
        elif name in _TOPIC_LISTS:
            found.topics.update(_texts(value))
        if topic is not None and (name in _PARTITIONS or name in _PARTITION_LISTS):
            numbers = value if isinstance(value, tuple) else (value,)
            found.partitions.update((topic, each) for each in numbers if isinstance(each, int))
    return found


def _walk(
    value: Any, topic: str | None, topic_names: Mapping[bytes, str]
) -> Iterator[tuple[str | None, str, Any]]:
    """(topic of the field, name, value) of each field, at any depth."""
    fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    topic = _topic_of(type(value).__name__, fields, topic_names) or topic
    for name, inner in fields.items():
        yield topic, name, inner
        for each in inner if isinstance(inner, tuple) else (inner,):
            if dataclasses.is_dataclass(each):
                yield from _walk(each, topic, topic_names)


def _topic_of(
    class_name: str, fields: Mapping[str, Any], topic_names: Mapping[bytes, str]
) -> str | None:
    for name in _TOPICS:
        if isinstance(fields.get(name), str) and fields[name]:
            return str(fields[name])
    topic_id = fields.get("topic_id")
    if isinstance(topic_id, bytes) and topic_id in topic_names:
        return topic_names[topic_id]
    if "Topic" in class_name and isinstance(fields.get("name"), str) and fields["name"]:
        return str(fields["name"])
    return None


def _texts(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, str):
            yield each


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Conditions on a request. All must hold; ``None`` matches any request.

    Attributes:
        api: The API, by Kafka's name (``"OffsetCommit"``).
        versions: The lowest and the highest version.
        node_id: The broker that the client is connected to.
        client_id: The client id in the request's header.
        group_id: A group mentioned in the request.
        transactional_id: A transactional id mentioned in the request.
        member_id: A member mentioned in the request; ``""`` for a member without an id.
        topic: A topic mentioned in the request.
        partition: A partition mentioned in the request, of ``topic`` if that is given.
    """

    api: str | None = None
    versions: tuple[int, int] | None = None
    node_id: int | None = None
    client_id: str | None = None
    group_id: str | None = None
    transactional_id: str | None = None
    member_id: str | None = None
    topic: str | None = None
    partition: int | None = None

    def hits(
        self, received: RequestReceived, topic_names: Callable[[], Mapping[bytes, str]]
    ) -> bool:
        """Check a request. Raises nothing.

        Args:
            received: The request, with its client and connection.
            topic_names: Returns names by topic id. Called only if the result depends on a topic or
                partition.

        Returns:
            Whether all conditions hold.
        """
        if self.api is not None and APIS[type(received.request).API_KEY].name != self.api:
            return False
        if self.versions is not None:
            low, high = self.versions
            if not low <= received.version <= high:
                return False
        if self.node_id is not None and received.node_id != self.node_id:
            return False
        if self.client_id is not None and received.client.client_id != self.client_id:
            return False
        inside = (
            self.group_id,
            self.transactional_id,
            self.member_id,
            self.topic,
            self.partition,
        )
        if all(condition is None for condition in inside):
            return True
        about_topics = self.topic is not None or self.partition is not None
        names = topic_names() if about_topics else {}
        return self._mentioned(mentions(received.request, names))

    def _mentioned(self, found: Mentions) -> bool:
        if self.group_id is not None and self.group_id not in found.groups:
            return False
        wanted = self.transactional_id
        if wanted is not None and wanted not in found.transactional_ids:
            return False
        if self.member_id is not None and self.member_id not in found.members:
            return False
        if self.partition is not None:
            return any(
                partition == self.partition and self.topic in (None, topic)
                for topic, partition in found.partitions
            )
        return self.topic is None or self.topic in found.topics
