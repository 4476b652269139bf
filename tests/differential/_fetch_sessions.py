"""Fetches in sessions (KIP-227), right and wrong: what a client that knows its sessions may send,
and what one that is out of step sends.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
)
from tests.differential._sequence_state import ABSENT_TOPIC, SequenceState
from tests.differential._steps import Ask, Topic

__all__ = ["FetchClient", "Key", "Place"]

Key = tuple[str, bytes, int]
"""Topic, topic id, partition."""

_ALL: Final = 1_000_000
_BY_ID_FROM: Final = 13
_SESSIONS_FROM: Final = 7
_EPOCHS_FROM: Final = 12
_ZERO_ID: Final = bytes(16)


@dataclass(slots=True)
class Place:
    """Where to read: the topics that there are, the ids of those that are gone, and the offsets at
    which batches begin, the end included, by (topic, partition)."""

    topics: list[Topic] = field(default_factory=list[Topic])
    gone: list[Topic] = field(default_factory=list[Topic])
    offsets: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def partitions(self) -> list[Key]:
        """All partitions."""
        return [
            (topic.name, topic.topic_id, number)
            for topic in self.topics
            for number in range(topic.partitions)
        ]

    def end(self, topic: str, number: int) -> int:
        return self.offsets.get((topic, number), [0])[-1]


@dataclass(slots=True)
class _Session:
    session_id: int
    version: int
    epoch: int = 1
    known: list[Key] = field(default_factory=list[Key])


class FetchClient:
    """Asks for partitions, mostly as a client should. ``heard`` is to be told of each answer."""

    def __init__(self, state: SequenceState, place: Place) -> None:
        self._state = state
        self._rng: random.Random = state.rng
        self._place = place
        self._sessions: list[_Session] = []
        self._held: _Session | None = None
        """The session of a request that waits."""

    def ask(self) -> Ask:
        """The next request."""
        choices = [self._open, self._sessionless]
        weights = [1.5 if len(self._sessions) < 4 else 0.2, 0.4]
        if self._sessions:
            choices += [self._go_on, self._out_of_step, self._reopen, self._close]
            weights += [9.0, 1.2, 0.5, 0.3]
        (choice,) = self._rng.choices(choices, weights)
        return choice()

    def waiting(self, max_wait_ms: int) -> Ask | None:
        """A request that may have to wait, in a session if there is one. It counts as taken."""
        if not self._sessions:
            return None
        found = self._go_on()
        message = found.message
        message.max_wait_ms = max_wait_ms
        message.min_bytes = self._rng.choice([1, 1, 300])
        session = next(s for s in self._sessions if s.session_id == message.session_id)
        if self._rng.random() < 0.8:
            self._catch_up(session, found.version, message)
        self._taken(session, message)
        self._held = session
        return Ask("wait-in-session", message, found.version)

    def let_go(self) -> None:
        """Nothing waits any more."""
        self._held = None

    def _catch_up(self, session: _Session, version: int, message: FetchRequest) -> None:
        """Let a session ask for the ends of partitions that are there, and for nothing else."""
        there = {
            (*self._named(version, name, topic_id), number): self._place.end(name, number)
            for name, topic_id, number in self._place.partitions()
        }
        known = [key for key in session.known if key in there] or list(there)[:2]
        message.topics = tuple(
            FetchRequestFetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=(
                    FetchRequestFetchPartition(
                        partition=number,
                        fetch_offset=there[name, topic_id, number],
                        partition_max_bytes=_ALL,
                    ),
                ),
            )
            for name, topic_id, number in known
        )
        gone = [key for key in session.known if key not in there]
        message.forgotten_topics_data = self._forgotten(version, gone)

    def asks_to_close(self) -> list[Ask]:
        """Requests that end what is open: brokers have room for so many sessions."""
        return [
            self._ask("close-session", each, FetchRequest(), each.version, epoch=-1)
            for each in self._sessions
        ]

    def heard(self, ask: Ask, answer: Any) -> None:
        """Note what an answer says of sessions."""
        message = ask.message
        session_id = getattr(answer, "session_id", 0)
        code = getattr(answer, "error_code", -1)
        if message.session_epoch in (0, -1):
            self._drop(message.session_id)
            if session_id and not code:
                keys = [
                    (topic.topic, topic.topic_id, each.partition)
                    for topic in message.topics
                    for each in topic.partitions
                ]
                self._sessions.append(_Session(session_id, ask.version, known=keys))
            return
        session = next((s for s in self._sessions if s.session_id == message.session_id), None)
        if session is None or code or message.session_epoch != session.epoch:
            return
        if not session_id:
            self._drop(session.session_id)
            return
        self._taken(session, message)

    @staticmethod
    def _taken(session: _Session, message: FetchRequest) -> None:
        session.epoch += 1
        forgotten = [
            (topic.topic, topic.topic_id, number)
            for topic in message.forgotten_topics_data
            for number in topic.partitions
        ]
        named = [
            (topic.topic, topic.topic_id, each.partition)
            for topic in message.topics
            for each in topic.partitions
        ]
        known = [*session.known, *(key for key in named if key not in session.known)]
        session.known = [key for key in known if key not in forgotten]

    def _drop(self, session_id: int) -> None:
        self._sessions = [each for each in self._sessions if each.session_id != session_id]

    # -- kinds of requests -----------------------------------------------------------------------

    def _open(self) -> Ask:
        message = self._plain(version := self._version(), self._some_keys(version))
        return self._ask("open-session", None, message, version, epoch=0)

    def _sessionless(self) -> Ask:
        message = self._plain(version := self._version(), self._some_keys(version))
        return self._ask("sessionless", None, message, version, epoch=-1)

    def _reopen(self) -> Ask:
        session = self._rng.choice(self._sessions)
        message = self._plain(session.version, self._some_keys(session.version))
        return self._ask("reopen-session", session, message, session.version, epoch=0)

    def _close(self) -> Ask:
        session = self._rng.choice(self._sessions)
        named = self._some_keys(session.version) if self._rng.random() < 0.4 else []
        message = self._plain(session.version, named)
        return self._ask("close-session", session, message, session.version, epoch=-1)

    def _go_on(self) -> Ask:
        rng = self._rng
        session = rng.choice(self._sessions)
        version = session.version
        by_id = version >= _BY_ID_FROM
        if rng.random() < 0.3:  # all versions of a kind share sessions
            version = self._version(by_id=by_id)
        named = [key for key in session.known if rng.random() < 0.4]
        if rng.random() < 0.3:
            named += self._some_keys(version)
        rng.shuffle(named)
        forgotten = [key for key in session.known if rng.random() < 0.1]
        if rng.random() < 0.1:
            forgotten += self._some_keys(version)
        if rng.random() < 0.08:
            forgotten.append((ABSENT_TOPIC if not by_id else "", rng.randbytes(16), 0))
        message = self._plain(version, named)
        if session is not self._held:  # before 4.3 brokers never answer in an emptied session
            message.forgotten_topics_data = self._forgotten(version, forgotten)
        return self._ask("go-on", session, message, version, epoch=session.epoch)

    def _out_of_step(self) -> Ask:
        """A wrong epoch, a session that is not there, topics named the other way."""
        rng = self._rng
        session = rng.choice(self._sessions)
        version, epoch, session_id = session.version, session.epoch, session.session_id
        choice = rng.randrange(3)
        if choice == 0:
            epoch = rng.choice([epoch + 1, epoch - 1 or 7, epoch + 100, -2, 2**31 - 1])
        elif choice == 1:
            epoch = rng.choice([1, 1, epoch, -2])
            session_id = rng.choice([0, 0, 1, -1, -(2**31), 2**31 - 1, rng.randrange(1, 2**31)])
        else:
            version = self._version(by_id=version < _BY_ID_FROM)
        message = self._plain(version, self._some_keys(version))
        found = self._ask("out-of-step", session, message, version, epoch=epoch)
        found.message.session_id = session_id
        return found

    # -- their parts -----------------------------------------------------------------------------

    def _version(self, *, by_id: bool | None = None) -> int:
        low, high = self._state.offered["Fetch"]
        if by_id is None:
            by_id = self._rng.random() < 0.85
        if by_id:
            return high if self._rng.random() < 0.4 else self._rng.randint(_BY_ID_FROM, high)
        return self._rng.randint(max(low, _SESSIONS_FROM), _BY_ID_FROM - 1)

    def _ask(
        self,
        action: str,
        session: _Session | None,
        message: FetchRequest,
        version: int,
        *,
        epoch: int,
    ) -> Ask:
        message.session_id = 0 if session is None else session.session_id
        message.session_epoch = epoch
        return self._state.ask(action, message, version)

    def _some_keys(self, version: int) -> list[Key]:
        """A few partitions; now and then one that is not there, or one twice. No zero ids: what
        brokers of Kafka 4.3 and 4.4 answer then is decided by chance, in a hash table."""
        rng = self._rng
        keys = self._place.partitions()
        found = rng.sample(keys, rng.randint(1, len(keys)))
        if rng.random() < 0.06:
            found.append((found[0][0], found[0][1], rng.choice([9, 9, -1])))
        if rng.random() < 0.04:
            found.append((ABSENT_TOPIC, b"\x05" * 16, 0))
        if self._place.gone and version >= _BY_ID_FROM and rng.random() < 0.3:
            old = rng.choice(self._place.gone)
            found.append((old.name, old.topic_id, 0))
        if rng.random() < 0.03:
            found.append(found[0])
        return found

    def _plain(self, version: int, keys: Sequence[Key]) -> FetchRequest:
        rng = self._rng
        low = rng.choice([_ALL] * 8 + [0, 1, 100, 400, 1500])
        message = FetchRequest(
            max_wait_ms=0,
            min_bytes=rng.choice([0, 1, 1, 1]),
            max_bytes=low,
            isolation_level=rng.choice([0, 0, 1, 1]),
        )
        topics: list[FetchRequestFetchTopic] = []
        for name, topic_id, number in keys:
            topic, by_id = self._named(version, name, topic_id)
            if not topics or (topics[-1].topic, topics[-1].topic_id) != (topic, by_id):
                topics.append(FetchRequestFetchTopic(topic=topic, topic_id=by_id, partitions=()))
            partition = self._partition(version, name, number)
            topics[-1].partitions = (*topics[-1].partitions, partition)
        message.topics = tuple(topics)
        return message

    @staticmethod
    def _named(version: int, name: str, topic_id: bytes) -> tuple[str, bytes]:
        return ("", topic_id) if version >= _BY_ID_FROM else (name, _ZERO_ID)

    def _partition(self, version: int, name: str, number: int) -> FetchRequestFetchPartition:
        rng = self._rng
        batches = self._place.offsets.get((name, number), [0])
        end = batches[-1]
        found = FetchRequestFetchPartition(
            partition=number,
            fetch_offset=rng.choice(
                [0, end, end, rng.choice(batches), rng.choice(batches), rng.randint(0, end)] * 3
                + [-1, end + 1, 999]
            ),
            partition_max_bytes=rng.choice([_ALL] * 10 + [0, 1, 100, 400]),
        )
        if rng.random() < 0.5:
            found.current_leader_epoch = rng.choice([0, 0, 0, 0, 0, 0, 5])
        if version >= _EPOCHS_FROM and rng.random() < 0.4:
            found.last_fetched_epoch = rng.choice([0, 0, 0, 0, 0, 3])
        return found

    def _forgotten(
        self, version: int, keys: Sequence[Key]
    ) -> tuple[FetchRequestForgottenTopic, ...]:
        found: dict[tuple[str, bytes], list[int]] = {}
        for name, topic_id, number in keys:
            found.setdefault(self._named(version, name, topic_id), []).append(number)
        return tuple(
            FetchRequestForgottenTopic(topic=name, topic_id=topic_id, partitions=tuple(numbers))
            for (name, topic_id), numbers in found.items()
        )
