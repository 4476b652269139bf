"""What a scenario plays on: a coordinator behind a ``Backend``, and what the actors remember.

Commands build real requests and read real responses, so the same file plays on the bundled
coordinator (virtual time) and on Apache Kafka (``python -m tests.scenarios --kafka 4.4.0``).

Members are named by their ids. A member remembers what its last successful response said, so a
scenario only writes an epoch where the epoch is the point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kip848_client.core.types import TopicId
from kip848_client.error_codes import error_name
from mock_coordinator.core.groups.records.state_records import StateRecord
from tests.scenarios.notation import NotationError, partitions_text, read_partitions

__all__ = [
    "DEFAULT_GROUP",
    "Backend",
    "GroupView",
    "Member",
    "MemberView",
    "ScenarioRun",
    "Unplayable",
]

DEFAULT_GROUP: Final = "g"
_GENERATED: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


class Unplayable(Exception):
    """The backend cannot run this command (a real broker shows no timers)."""


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member as the coordinator's state has it. Partitions are by topic name."""

    member_id: str
    epoch: int
    previous_epoch: int
    state: str
    assigned: Mapping[str, Sequence[int]]
    revoking: Mapping[str, Sequence[int]]
    target: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class GroupView:
    """A group as the coordinator's state has it; ``members`` sorted by id."""

    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[MemberView, ...]


class Backend(Protocol):
    """A coordinator to play on."""

    profile: str

    # Send a request, return its response.
    def request(self, message: Any, version: int) -> Any: ...

    # Send a request over a connection of the sender's own; ``None`` when there is no answer yet.
    # A sender that still waits for another answer gives up on it and connects again.
    def send(self, sender: str, message: Any, version: int) -> Any: ...

    # Whose answers the file has in the output of the next command: for them it is worth waiting.
    def expect(self, senders: Collection[str]) -> None: ...

    # The answers that have come since to such requests, with their senders.
    def late_answers(self) -> list[tuple[str, Any]]: ...

    # Change topics, and wait until groups see the change. A broker may choose another id than
    # the one it is given; the id that the topic really got is returned.
    def create_topic(self, name: str, partitions: int, topic_id: TopicId) -> TopicId: ...
    def grow_topic(self, name: str, partitions: int) -> None: ...
    def delete_topic(self, name: str) -> None: ...

    # Let time pass, timers running.
    def advance(self, duration_ms: int) -> None: ...

    # Let the coordinator finish its background work (regex resolution).
    def settle(self) -> None: ...

    # Lose everything but the log, and come back.
    def crash(self) -> None: ...

    # Everything that was appended to the coordinator's log so far.
    def log(self) -> Sequence[StateRecord]: ...

    # Assert that the coordinator's own idea of a group is the one its log adds up to.
    def check(self, group: str, view: GroupView | None) -> None: ...

    # One line a running timer. May raise ``Unplayable``.
    def timers(self, group: str) -> list[str]: ...


@dataclass(slots=True)
class Member:
    """What a member of the cast remembers."""

    member_id: str
    group: str
    epoch: int = 0
    """The member epoch, or a classic member's generation."""
    protocol: tuple[str | None, str | None] = (None, None)
    """Of a classic member: the group's protocol type and protocol."""
    owned: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    must_acknowledge: bool = False
    prepared_epoch: int = -1
    """the group epoch that it was given to compute an assignment for"""


class ScenarioRun:
    """One run of one scenario. ``suffix`` makes group ids unique on a shared broker; it never
    shows in outputs."""

    def __init__(self, backend: Backend, suffix: str = "") -> None:
        self.backend = backend
        self.suffix = suffix
        self._mark = 0
        self.members: dict[tuple[str, str], Member] = {}
        self.topic_ids: dict[str, TopicId] = {}
        self._topic_names: dict[bytes, str] = {}
        self._aliases: dict[str, str] = {}
        self.producers: dict[str, tuple[int, int]] = {}
        self._waiting: dict[str, tuple[Callable[[Any], None], Callable[[Any], list[str]]]] = {}
        self._late: list[tuple[str, Callable[[Any], list[str]], Any]] = []

    # the coordinator

    def request(self, message: Any, version: int) -> Any:
        """Send a request; ``records`` then shows what it wrote."""
        self._mark = len(self.backend.log())
        return self.backend.request(message, version)

    def ask(
        self,
        sender: str,
        message: Any,
        version: int,
        note: Callable[[Any], None],
        report: Callable[[Any], list[str]],
    ) -> list[str]:
        """Send a request that may have to wait. ``note`` remembers what the answer says, ``report``
        says it in lines, now or after a later command."""
        self._mark = len(self.backend.log())
        answer = self.backend.send(sender, message, version)
        if answer is None:
            self._waiting[sender] = (note, report)
            return [f"{sender}: waits"]
        self._waiting.pop(sender, None)
        note(answer)
        self._take_late_answers()  # the names of others are known from theirs
        return report(answer)

    def late_answers(self) -> list[str]:
        """What the answers say that have come in the meantime, by sender."""
        self._take_late_answers()
        came, self._late = sorted(self._late, key=lambda each: each[0]), []
        return [line for _, report, answer in came for line in report(answer)]

    def _take_late_answers(self) -> None:
        if self._waiting:
            for sender, answer in self.backend.late_answers():
                note, report = self._waiting.pop(sender)
                note(answer)
                self._late.append((sender, report, answer))

    def advance(self, duration_ms: int) -> None:
        """Let time pass; ``records`` then shows what the timers wrote."""
        self._mark = len(self.backend.log())
        self.backend.advance(duration_ms)

    def new_records(self) -> list[StateRecord]:
        """What was appended for this scenario's groups since the last request or advance."""
        fresh = self.backend.log()[self._mark :]
        return [record for record in fresh if record.group_id.endswith(self.suffix)]

    # names

    def group_id(self, name: str) -> str:
        """The group id on the wire. The empty one stays empty: scenarios send it on purpose."""
        return name + self.suffix if name.strip() else name

    def transactional_id(self, name: str) -> str:
        """The transactional id on the wire."""
        return name + self.suffix

    def alias(self, member_id: str, shown: str) -> None:
        """Show a generated member id under a short name, and accept that name for it."""
        self._aliases[member_id] = shown

    def known_id(self, name: str) -> str | None:
        """The id that the coordinator last gave to somebody of this name."""
        given = [real for real, shown in self._aliases.items() if shown == name]
        return given[-1] if given else None

    def member_id(self, name: str) -> str:
        """The member id on the wire."""
        return self.known_id(name) or name

    def shown_id(self, member_id: str) -> str:
        """The member's name; ``?`` for an id that nobody in the cast was told yet."""
        shown = self.shown(member_id)
        return "?" if shown == member_id and _GENERATED.search(member_id) else shown

    def shown(self, text: str) -> str:
        """A text of the broker with our names in it."""
        for real, name in self._aliases.items():
            text = text.replace(real, name)
        return text.replace(self.suffix, "") if self.suffix else text

    # topics

    def add_topic(self, name: str, topic_id: TopicId) -> None:
        self.topic_ids[name] = topic_id
        self._topic_names[topic_id] = name

    def topic_id(self, name: str) -> TopicId:
        """Of a topic of this scenario, deleted ones included."""
        if name not in self.topic_ids:
            raise NotationError(f"no topic {name!r} was created")
        return self.topic_ids[name]

    def name_resource(self, resource: TopicId, name: str) -> None:
        """What stands where consumer groups have a topic id, and how it is shown."""
        self._topic_names[resource] = name

    def topic_name(self, topic_id: bytes) -> str:
        return self._topic_names.get(topic_id, f"unknown:{topic_id.hex()}")

    def by_name(self, topic_partitions: Iterable[Any]) -> dict[str, tuple[int, ...]]:
        """The wire's topic partitions by topic name; topics without partitions stay away."""
        return {
            self.topic_name(each.topic_id): tuple(each.partitions)
            for each in topic_partitions
            if each.partitions
        }

    def partitions_text(self, topic_partitions: Iterable[Any]) -> str:
        return partitions_text(self.by_name(topic_partitions))

    def read_partitions(self, texts: Iterable[str]) -> list[tuple[str, TopicId, tuple[int, ...]]]:
        """``foo[0-2]`` texts as (name, id, partitions)."""
        found: list[tuple[str, TopicId, tuple[int, ...]]] = []
        for text in texts:
            topic, numbers, _ = read_partitions(text)
            found.append((topic, self.topic_id(topic), numbers))
        return found

    # members

    def member(self, name: str, group: str) -> Member:
        """What the member remembers; a new one remembers nothing."""
        member_id = self.member_id(name)
        return self.members.setdefault((group, member_id), Member(member_id, group))

    # outputs

    def error_text(self, code: int, message: str | None = None) -> str:
        """``FENCED_MEMBER_EPOCH (110): what the broker says``; ``ok`` for 0."""
        if code == 0:
            return "ok"
        name = f"{error_name(code)} ({code})"
        return f"{name}: {self.shown(message)}" if message else name
