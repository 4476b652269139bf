"""Incremental fetch sessions (KIP-227): a client need not repeat the partitions that it fetches.

Theory of operation
===================

A session has the partitions in the order in which they will be read, and for each what the client
saw last. The first response determines the order: partitions that do not exist come last. An
incremental request changes the set; the response has only partitions with something new: records,
another high watermark or log start, an error, or a preferred replica. A partition that delivers
records then moves to the end, so that a busy partition cannot starve the others when responses are
full. The broker chooses session ids; epochs count requests. A client that is out of step starts
over, at the cost of one round trip.

A session by id also remembers the name that an id had when it was first resolved, and looks up the
topic by that name from then on. So a topic that was created again is found, but with the wrong id.

``max.incremental.fetch.session.cache.slots`` sessions are allowed, divided among eight shards that
take new ones in turn. If a shard is full, it evicts a session that was not used for two minutes;
otherwise an older one with fewer partitions (never one of a replica for one of a client). If there
is none, the new client is served without a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.wire.messages.fetch import FetchResponsePartitionData
from kip848_client.error_codes import ErrorCode

__all__ = ["FetchKey", "FetchSession", "FetchSessions", "Wanted", "has_a_shard"]

_EVICTABLE_AFTER_MS: Final = 120_000
_SHARDS: Final = 8
_LAST_EPOCH: Final = 0x7FFFFFFF
_IDS_OF_A_SHARD: Final = 0x7FFFFFFF // _SHARDS


@dataclass(frozen=True, slots=True)
class FetchKey:
    """A partition as the client names it: by name up to version 12, by id (16 bytes) from 13 on."""

    topic: str
    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client wants of one partition."""

    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int


@dataclass(slots=True)
class _Told:
    """What a client knows of one partition."""

    wanted: Wanted
    name: str | None = None
    """Of its topic, if it was ever found."""
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass(slots=True)
class FetchSession:
    """One client's session; ``epoch`` is the one that its next request must carry. ``size`` is how
    many partitions it had when it was last used; ``privileged`` ones are of replicas."""

    session_id: int
    by_id: bool
    created_ms: int
    privileged: bool = False
    epoch: int = 1
    last_used_ms: int = 0
    size: int = 0
    _partitions: dict[FetchKey, _Told] = field(default_factory=dict)

    def update(self, wanted: dict[FetchKey, Wanted], forgotten: Iterable[FetchKey]) -> None:
        """Add and change partitions, and take some away."""
        for key, want in wanted.items():
            told = self._partitions.get(key)
            if told is None:
                self._partitions[key] = _Told(want)
            else:
                told.wanted = want
        for key in forgotten:
            self._partitions.pop(key, None)

    @property
    def wanted(self) -> dict[FetchKey, Wanted]:
        """All partitions, in reading order."""
        return {key: told.wanted for key, told in self._partitions.items()}

    def names(self, find: Callable[[FetchKey], str | None]) -> dict[FetchKey, str | None]:
        """The topic names of all partitions; ``find`` is asked for those not found before."""
        for key, told in self._partitions.items():
            if told.name is None:
                told.name = find(key)
        return {key: told.name for key, told in self._partitions.items()}

    def opened(self, key: FetchKey, name: str | None, data: FetchResponsePartitionData) -> None:
        """Note what the first response says."""
        told = self._partitions[key]
        told.name = name
        told.high_watermark = data.high_watermark
        told.log_start_offset = data.log_start_offset

    def tell(self, key: FetchKey, data: FetchResponsePartitionData) -> bool:
        """Note what a later response is about to say; returns whether it has to be said at all."""
        told = self._partitions.get(key)
        if told is None:  # forgotten while this request waited
            return False
        news = bool(data.records) or data.diverging_epoch.epoch >= 0 or bool(data.error_code)
        news = news or data.preferred_read_replica >= 0
        news = news or data.preferred_read_replica >= 0
        if told.high_watermark != data.high_watermark:
            told.high_watermark = data.high_watermark
            news = True
        if told.log_start_offset != data.log_start_offset:
            told.log_start_offset = data.log_start_offset
            news = True
        if data.error_code:
            told.high_watermark = (
                -1
            )  # so that the client learns of the recovery even when nothing else changed
        if data.records:
            self._partitions[key] = self._partitions.pop(key)
        return news

    def used(self, now_ms: int) -> None:
        """A request came, or the session was opened."""
        self.last_used_ms = now_ms
        self.size = len(self._partitions)

    def is_worth_less_than(self, size: int, *, privileged: bool) -> bool:
        """Whether a new session with ``size`` partitions may take the place of this one."""
        # a young session was not noted as evictable when it was last used
        young = self.last_used_ms - self.created_ms <= _EVICTABLE_AFTER_MS
        if young and (self.privileged or not privileged):
            return False
        return (self.privileged, self.size) < (privileged, size)

    def advance(self) -> None:
        """The next request has the next epoch; after the last comes 1, because 0 opens a
        session."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class FetchSessions:
    """All sessions of a broker; at most ``slots``, an eighth of them in each shard."""

    def __init__(self, slots: int) -> None:
        self._room: Final = slots // _SHARDS
        self._sessions: Final[dict[int, FetchSession]] = {}
        self._shards: Final[tuple[dict[int, FetchSession], ...]] = tuple({} for _ in range(_SHARDS))
        self._opened = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def create(
        self,
        now_ms: int,
        session_id: int,
        wanted: dict[FetchKey, Wanted],
        *,
        by_id: bool,
        privileged: bool = False,
    ) -> FetchSession | None:
        """A new session for these partitions, or ``None`` when the cache is full."""
        shard = self._shards[self._opened % _SHARDS]
        self._opened += 1
        if session_id <= 0 or session_id in self._sessions:
            return None
        if len(shard) >= self._room and not self._evict(
            shard, now_ms, len(wanted), privileged=privileged
        ):
            return None
        session = FetchSession(session_id, by_id, now_ms, privileged)
        session.update(wanted, ())
        session.used(now_ms)
        self._sessions[session_id] = shard[session_id] = session
        return session

    def _evict(
        self, shard: dict[int, FetchSession], now_ms: int, size: int, *, privileged: bool
    ) -> bool:
        """Evict a session of a shard, if one has to give way."""
        if not shard:
            return False
        stalest = min(shard.values(), key=lambda s: (s.last_used_ms, s.session_id))
        if now_ms - stalest.last_used_ms > _EVICTABLE_AFTER_MS:
            self.close(stalest.session_id)
            return True
        least = min(
            (s for s in shard.values() if s.is_worth_less_than(size, privileged=privileged)),
            key=lambda s: (s.privileged, s.size, s.session_id),
            default=None,
        )
        if least is None:
            return False
        self.close(least.session_id)
        return True

    def resume(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession | ErrorCode:
        """The session of an incremental request, or why there is none. When it has been updated,
        let it ``advance`` and say that it was ``used``."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.by_id != by_id:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        return session

    def new_id(self, chance: int) -> int:
        """An id in the range of the shard whose turn it is, drawn by lot."""
        first = self._opened % _SHARDS * _IDS_OF_A_SHARD
        return first + 1 + chance % (_IDS_OF_A_SHARD - 1)

    def get(self, session_id: int) -> FetchSession | None:
        """A session, for looking at."""
        return self._sessions.get(session_id)

    @property
    def ids(self) -> tuple[int, ...]:
        """Of all sessions, oldest first."""
        return tuple(self._sessions)

    def close(self, session_id: int) -> None:
        """Forget a session; unknown ids are ignored."""
        if self._sessions.pop(session_id, None) is not None:
            for shard in self._shards:
                shard.pop(session_id, None)


def has_a_shard(session_id: int) -> bool:
    """Whether a broker finds a shard to look for this id in; it fails when there is none. Ids count
    from 0 on, and Java divides towards 0."""
    return -_IDS_OF_A_SHARD < session_id < _SHARDS * _IDS_OF_A_SHARD
