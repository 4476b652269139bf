"""What the choosers of requests share: the seed's randomness, the topics, the groups and the
versions."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.wire import request_api
from tests.differential._model import GroupModel, MemberModel, Partitions, everything
from tests.differential._steps import Ask, Topic

__all__ = ["ABSENT_TOPIC", "SequenceState"]

ABSENT_TOPIC: Final = "no-such-topic"

_ID_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@dataclass(slots=True)
class SequenceState:
    """One sequence's world. ``topics`` are those that it subscribes to; ``offered`` the version
    ranges of the real broker, by API name; ``prefix`` begins each of its group ids and
    ``topic_prefix`` each topic of its own."""

    rng: random.Random
    prefix: str
    topic_prefix: str
    topics: dict[str, Topic]
    offered: Mapping[str, tuple[int, int]]
    uses_patterns: bool
    main: GroupModel = field(init=False)
    side: GroupModel = field(init=False)
    solo: GroupModel = field(init=False)
    future_topics: list[str] = field(init=False)
    """Topics that may be subscribed to before they exist."""
    long_ids: bool = field(init=False)
    ids_given: int = 0

    def __post_init__(self) -> None:
        self.main = GroupModel(self.prefix)
        self.side = GroupModel(f"{self.prefix}-side")
        self.solo = GroupModel(f"{self.prefix}-solo")
        self.future_topics = [f"{self.topic_prefix}-{number}" for number in range(2)]
        self.long_ids = self.rng.random() < 0.6

    def group_named(self, group_id: str) -> GroupModel | None:
        groups = (self.main, self.side, self.solo)
        return next((group for group in groups if group.group_id == group_id), None)

    def group(self) -> GroupModel:
        """The main group mostly, sometimes the other one."""
        return self.side if self.rng.random() < 0.08 else self.main

    def version(self, api: str) -> int:
        """One of the versions that the broker and our classes share; the newest is likelier."""
        low, high = self.offered[api]
        return high if self.rng.random() < 0.5 else self.rng.randint(low, high)

    def some_version(self, api: str) -> int:
        """Any of the versions, all alike."""
        low, high = self.offered[api]
        return self.rng.randint(low, high)

    def ask(self, action: str, message: Any, version: int | None = None) -> Ask:
        chosen = self.version(request_api(message).name) if version is None else version
        return Ask(action, message, chosen)

    def new_member_id(self) -> str:
        self.ids_given += 1
        if self.long_ids:
            return "".join(self.rng.choices(_ID_LETTERS, k=22))
        return f"m{self.ids_given}"

    def some_names(self, *, allow_empty: bool = False) -> tuple[str, ...]:
        """Topic names for a subscription; some do not exist, some come twice."""
        known = sorted(self.topics)
        names = self.rng.sample(known, self.rng.randint(1, len(known)))
        if self.rng.random() < 0.15:
            names.append(self.rng.choice([ABSENT_TOPIC, *self.future_topics]))
        if self.rng.random() < 0.05:
            names.append(names[0])
        if allow_empty and self.rng.random() < 0.1:
            names = []
        return tuple(names)

    def some_topic(self) -> Topic:
        return self.topics[self.rng.choice(sorted(self.topics))]

    def wrong_partitions(self, member: MemberModel) -> Partitions:
        """Something that the member does not have exactly."""
        rng = self.rng
        right = sorted(member.assigned)
        choice = rng.randrange(4)
        if choice == 0 and right:
            return frozenset(rng.sample(right, rng.randrange(len(right))))
        if choice == 1:
            everything_known = everything(self.topics)
            extra = rng.sample(everything_known, min(3, len(everything_known)))
            return frozenset(right) | frozenset(extra)
        if choice == 2:
            return frozenset(right) | {(rng.randbytes(16), 0)}
        return frozenset([(self.some_topic().topic_id, rng.choice([999, -1]))])
