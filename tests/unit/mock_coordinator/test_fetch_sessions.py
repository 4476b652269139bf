"""How many fetch sessions a broker keeps, and which of them has to go for a new one."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.fetch import FetchRequest
from mock_coordinator.core.fetching.sessions import FetchKey, FetchSession, FetchSessions, Wanted
from tests.unit.mock_coordinator.broker_harness import BrokerHarness, fetch_partition

MINUTES_2 = 120_000
SHARDS = 8
HOUR_MS = 3_600_000


def partitions(count: int) -> dict[FetchKey, Wanted]:
    return {FetchKey("t", b"", index): Wanted(0, 1, -1, -1) for index in range(count)}


class Sessions:
    """The sessions of one shard: seven others are asked for in between, which are full."""

    def __init__(self, room: int) -> None:
        self.all = FetchSessions(room * SHARDS)
        self._id = 0

    def open(self, now_ms: int, size: int = 1, *, privileged: bool = False) -> FetchSession | None:
        self._id += 1
        session = self.all.create(
            now_ms, self._id, partitions(size), by_id=False, privileged=privileged
        )
        for other in range(SHARDS - 1):  # a taken id: the turn goes on, and there is no session
            assert self.all.create(now_ms, -1 - other, {}, by_id=False) is None
        return session

    def use(self, session: FetchSession | None, now_ms: int) -> None:
        assert session is not None
        assert self.all.resume(session.session_id, session.epoch, by_id=False) is session
        session.used(now_ms)

    def has(self, session: FetchSession | None) -> bool:
        assert session is not None
        answer = self.all.resume(session.session_id, session.epoch, by_id=False)
        return answer is session


def test_eight_shards_take_new_sessions_in_turn() -> None:
    sessions = FetchSessions(23)  # two in each shard: what is left over is nobody's
    made = [sessions.create(0, number, partitions(1), by_id=False) for number in range(1, 25)]
    assert [session is not None for session in made] == [True] * 16 + [False] * 8
    sessions.close(4)
    again = [sessions.create(0, number, partitions(1), by_id=False) for number in range(30, 38)]
    assert [session is not None for session in again] == [n == 3 for n in range(8)]


def test_fewer_slots_than_shards_are_none() -> None:
    sessions = FetchSessions(7)
    assert all(sessions.create(0, n, partitions(1), by_id=False) is None for n in range(1, 20))


def test_an_id_that_is_in_use_is_not_given_again() -> None:
    sessions = FetchSessions(100)
    assert sessions.create(0, 5, partitions(1), by_id=False) is not None
    assert sessions.create(0, 5, partitions(1), by_id=False) is None
    assert sessions.create(0, 0, partitions(1), by_id=False) is None


def test_a_stale_session_gives_way_whatever_it_is_worth() -> None:
    sessions = Sessions(2)
    first = sessions.open(0, 100, privileged=True)
    second = sessions.open(1, 100)
    sessions.use(first, 5)
    assert sessions.open(MINUTES_2 + 1, 1) is None, "two minutes, but no more"
    third = sessions.open(MINUTES_2 + 2, 1)
    assert third is not None
    assert not sessions.has(second)
    assert sessions.has(first)


def test_of_the_old_ones_in_use_the_smallest_gives_way_to_a_larger_one() -> None:
    sessions = Sessions(2)
    small, large = sessions.open(0, 3), sessions.open(0, 5)
    for now_ms in (60_000, 119_000, 121_000):
        sessions.use(small, now_ms)
        sessions.use(large, now_ms)
    assert sessions.open(121_000, 2) is None
    assert sessions.open(121_000, 3) is None, "as large is not larger"
    assert sessions.has(small)
    new = sessions.open(121_000, 4)
    assert new is not None
    assert not sessions.has(small)
    assert sessions.open(121_000, 9) is not None, "in the place of the one with five"
    assert not sessions.has(large)
    assert sessions.open(121_000, 99) is None, "the others are young"


def test_what_counts_is_the_size_when_it_was_last_used() -> None:
    sessions = Sessions(1)
    only = sessions.open(0, 3)
    assert only is not None
    sessions.use(only, 100_000)
    only.update(partitions(8), ())
    sessions.use(only, 130_000)
    assert sessions.open(130_000, 5) is None
    assert sessions.open(130_000, 9) is not None


def test_a_session_that_was_young_when_it_was_last_used_counts_as_young() -> None:
    sessions = Sessions(1)
    only = sessions.open(0, 1)
    sessions.use(only, 110_000)
    assert sessions.open(200_000, 50) is None
    sessions.use(only, 200_000)
    assert sessions.open(200_000, 50) is not None


def test_replicas_come_before_clients() -> None:
    sessions = Sessions(1)
    client = sessions.open(0, 50)
    replica = sessions.open(10, 1, privileged=True)
    assert replica is not None
    assert not sessions.has(client), "young as it is"
    assert sessions.open(20, 100) is None
    assert sessions.open(20, 100, privileged=True) is None, "a replica that is young"
    sessions.use(replica, 100_000)
    sessions.use(replica, 130_000)
    assert sessions.open(130_000, 100) is None
    assert sessions.open(130_000, 2, privileged=True) is not None


def test_epochs_wrap_to_one() -> None:
    session = FetchSessions(8).create(0, 5, partitions(1), by_id=False)
    assert session is not None
    session.epoch = 0x7FFFFFFF
    session.advance()
    assert session.epoch == 1


@pytest.mark.timeout(180)
def test_days_of_clients_that_come_and_go_leave_no_more_sessions_than_slots() -> None:
    harness = BrokerHarness({"t": 3}, max_incremental_fetch_session_cache_slots="80")
    fetches = harness.broker.core._services[None].fetches
    most = with_session = 0
    for number in range(10_000):
        wanted = [fetch_partition(partition=index) for index in range(1 + number % 3)]
        request = harness.fetch_request(*wanted, session_id=0, session_epoch=0)
        answer = harness.ask(request, 12)
        assert answer.error_code == 0
        with_session += bool(answer.session_id)
        most = max(most, len(fetches._sessions))
        if number % 10 == 0:
            harness.broker.advance(HOUR_MS // 50)
    assert most == 80
    assert with_session > 2000, "old ones give way"


def test_a_client_without_a_session_is_served_all_the_same() -> None:
    harness = BrokerHarness({"t": 1}, max_incremental_fetch_session_cache_slots="8")
    harness.produce_bytes("t", harness.batch(b"v"))
    found = [
        harness.ask(harness.fetch_request(fetch_partition(), session_id=0, session_epoch=0), 12)
        for _ in range(9)
    ]
    assert [bool(answer.session_id) for answer in found] == [True] * 8 + [False]
    assert all(answer.responses[0].partitions[0].records for answer in found)


def test_a_session_is_opened_with_the_answer_and_not_while_a_fetch_waits() -> None:
    harness = BrokerHarness({"t": 1}, max_incremental_fetch_session_cache_slots="8")
    waiting = harness.fetch_request(
        fetch_partition(), session_id=0, session_epoch=0, min_bytes=1, max_wait_ms=500
    )
    assert isinstance(waiting, FetchRequest)
    fetches = harness.broker.core._services[None].fetches
    connection = harness.broker.connect()
    correlation = connection._submit(waiting, 12)
    assert len(fetches._sessions) == 0
    harness.broker.advance(500)
    assert len(fetches._sessions) == 1
    assert correlation is not None
