"""Fetch: what is read, what is waited for, what a session remembers."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchRequestReplicaState,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.record_batch import with_base_offset
from mock_coordinator.core.outputs import TornReply
from tests.unit.mock_coordinator.broker_harness import BrokerHarness, fetch_partition

BATCH = len(BrokerHarness().batch(b"v0", b"v1"))


def three_batches(**config: str) -> BrokerHarness:
    """Two records of two bytes in each batch, offsets 0 to 5."""
    harness = BrokerHarness({"t": 2}, **config)
    for _ in range(3):
        harness.produce_bytes("t", harness.batch(b"v0", b"v1"))
    return harness


@pytest.mark.parametrize("version", range(4, 13))
def test_all_versions_by_name(version: int) -> None:
    data = three_batches().fetch(version=version)
    assert len(data.records or b"") == 3 * BATCH
    assert (data.high_watermark, data.last_stable_offset) == (6, 6)
    assert data.log_start_offset == (0 if version >= 5 else -1)
    assert data.aborted_transactions is None


@pytest.mark.parametrize("version", range(13, 19))
def test_all_versions_by_id(version: int) -> None:
    harness = three_batches()
    known = harness.broker.core.broker.catalog.topics["t"].topic_id
    for topic_id, code in ((known, 0), (b"7" * 16, 100), (bytes(16), 100)):
        topic = FetchRequestFetchTopic(topic_id=topic_id, partitions=(fetch_partition(),))
        response = harness.ask(FetchRequest(topics=(topic,)), version)
        assert response.responses[0].topic_id == topic_id
        assert response.responses[0].partitions[0].error_code == code


@pytest.mark.parametrize(("offset", "size"), [(0, 3), (1, 3), (2, 2), (3, 2), (5, 1), (6, 0)])
def test_reading_starts_with_the_batch_of_the_offset(offset: int, size: int) -> None:
    assert len(three_batches().fetch(offset).records or b"") == size * BATCH


@pytest.mark.parametrize(
    ("max_bytes", "size"),
    [
        (0, BATCH),
        (1, BATCH),
        (BATCH, BATCH),
        (2 * BATCH, 2 * BATCH),
        (2 * BATCH + 5, 2 * BATCH + 5),
    ],
)
def test_a_partition_is_cut_but_for_its_first_batch(max_bytes: int, size: int) -> None:
    assert len(three_batches().fetch(max_bytes=max_bytes).records or b"") == size


def test_only_the_first_partition_may_exceed_the_whole() -> None:
    harness = three_batches()
    harness.produce_bytes("t", harness.batch(b"z"), partition=1)
    request = harness.fetch_request(fetch_partition(), fetch_partition(partition=1), max_bytes=1)
    one, two = harness.ask(request, 12).responses[0].partitions
    assert (len(one.records), len(two.records)) == (BATCH, 0)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"offset": 7}, 1),
        ({"offset": -1}, 1),
        ({"partition": 9}, 3),
        ({"current_leader_epoch": 1}, 75),
        ({"current_leader_epoch": 0}, 0),
        ({"offset": 3, "last_fetched_epoch": 1}, 1),
        ({"offset": 3, "last_fetched_epoch": 0}, 0),
        ({"max_bytes": -5}, -1),
    ],
)
def test_refusals(wanted: dict[str, int], code: int) -> None:
    data = three_batches().fetch(**wanted)
    assert data.error_code == code
    assert data.high_watermark == (-1 if code else 6)


def test_a_client_behind_the_leaders_epoch_is_fenced() -> None:
    harness = three_batches()
    topic = harness.broker.core.broker.catalog.topics["t"]
    log = harness.broker.core.broker.logs.of(topic, 0)
    assert log is not None
    log.leader_epoch = 2
    assert harness.fetch(current_leader_epoch=1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert harness.fetch(current_leader_epoch=2).error_code == 0
    assert harness.fetch(current_leader_epoch=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_client_that_is_ahead_is_told_where_it_diverged() -> None:
    data = three_batches().fetch(9, last_fetched_epoch=0)
    assert data.error_code == 0
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 6)
    assert data.records == b""


def test_what_was_deleted_is_out_of_range_whatever_the_epoch() -> None:
    """Kafka looks at the start of the log before it compares epochs."""
    harness = three_batches()
    topic = harness.broker.core.broker.catalog.topics["t"]
    log = harness.broker.core.broker.logs.of(topic, 0)
    assert log is not None
    log.delete_before(4)
    assert harness.fetch(2, last_fetched_epoch=0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.fetch(4, last_fetched_epoch=0).error_code == 0


def test_an_unknown_topic() -> None:
    harness = BrokerHarness()
    response = harness.ask(harness.fetch_request(fetch_partition(), topic="nope"), 12)
    assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [12, 15])
def test_replicas_are_turned_away(version: int) -> None:
    harness = three_batches()
    topic_id = harness.broker.core.broker.catalog.topics["t"].topic_id
    topic = FetchRequestFetchTopic(topic="t", topic_id=topic_id, partitions=(fetch_partition(),))
    who: dict[str, Any] = {"replica_id": 1}
    if version >= 15:
        who = {"replica_state": FetchRequestReplicaState(replica_id=1)}
    response = harness.ask(FetchRequest(topics=(topic,), **who), version)
    assert response.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_client_before_the_log_is_out_of_range_whatever_it_has_read() -> None:
    """Retention is no truncation: the log begins after the client's offset."""
    harness = three_batches()
    topic = harness.broker.core.broker.catalog.topics["t"]
    log = harness.broker.core.broker.logs.of(topic, 0)
    assert log is not None
    log.delete_before(4)
    assert harness.fetch(3, last_fetched_epoch=0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.fetch(-1, last_fetched_epoch=0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.fetch(4, last_fetched_epoch=0).error_code == 0


def test_an_epoch_that_wrote_nothing_differs() -> None:
    """Epochs 0 and 2 wrote; whoever read up to an offset in epoch 1 read something else."""
    harness = three_batches()
    topic = harness.broker.core.broker.catalog.topics["t"]
    log = harness.broker.core.broker.logs.of(topic, 0)
    assert log is not None
    log.begin_epoch(2)
    harness.produce_bytes("t", harness.batch(b"v0", b"v1"))
    data = harness.fetch(6, last_fetched_epoch=1)
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, 6)


@pytest.mark.parametrize(
    ("offset", "limit", "aborted"), [(0, 1 << 20, ()), (6, 1 << 20, ()), (0, 0, ()), (0, 1, None)]
)
def test_read_committed_is_told_that_nothing_was_aborted(
    offset: int, limit: int, aborted: tuple[()] | None
) -> None:
    """But for a partition whose first batch does not fit any more."""
    harness = three_batches()
    harness.produce_bytes("t", harness.batch(b"z"), partition=1)
    full = fetch_partition(partition=1)
    wanted = fetch_partition(offset, max_bytes=limit)
    request = harness.fetch_request(full, wanted, isolation_level=1)
    assert [
        each.aborted_transactions for each in harness.ask(request, 12).responses[0].partitions
    ] == [(), aborted]


def test_who_differs_is_told_of_no_aborted_transactions() -> None:
    harness = three_batches()
    wanted = fetch_partition(9, last_fetched_epoch=0)
    response = harness.ask(harness.fetch_request(wanted, isolation_level=1), 12)
    assert response.responses[0].partitions[0].aborted_transactions is None


# -- waiting -------------------------------------------------------------------------------------


class Waiting:
    """A fetch that waits, on a virtual clock."""

    def __init__(self, harness: BrokerHarness, *partitions: Any, **more: Any) -> None:
        self.harness = harness
        self.sink = Sink()
        number = harness.broker.driver.connect(self.sink)
        from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived

        request = harness.fetch_request(*partitions, **more)
        harness.broker.driver.submit(RequestReceived(number, 1, 12, LOCAL_CLIENT, request))
        self.number = number

    @property
    def sizes(self) -> list[int] | None:
        """Bytes for each partition of the answer; ``None`` while there is none."""
        if self.sink.reply is None:
            return None
        return [len(p.records) for t in self.sink.reply.response.responses for p in t.partitions]


class Sink:
    """Keeps the one reply."""

    def __init__(self) -> None:
        self.reply: Any = None

    def replied(self, reply: Any) -> None:
        assert self.reply is None
        self.reply = reply

    def torn(self, torn: TornReply) -> None:
        raise AssertionError(f"there is no fault: {torn}")

    def closed(self, why: str) -> None:
        raise AssertionError(why)


def wait_for(harness: BrokerHarness, **more: Any) -> Waiting:
    return Waiting(
        harness, fetch_partition(partition=1), **{"max_wait_ms": 300, "min_bytes": 1, **more}
    )


def test_it_waits_for_records_of_its_partitions() -> None:
    harness = three_batches()
    waiting = wait_for(harness)
    harness.produce_bytes("t", harness.batch(b"x"))
    assert waiting.sizes is None, "another partition's records are not awaited"
    harness.produce_bytes("t", harness.batch(b"x"), partition=1)
    assert waiting.sizes == [len(harness.batch(b"x"))]
    assert harness.broker.core.parked_requests == 0


def test_it_waits_no_longer_than_it_was_told() -> None:
    harness = three_batches()
    waiting = wait_for(harness)
    harness.broker.advance(299)
    assert waiting.sizes is None
    harness.broker.advance(1)
    assert waiting.sizes == [0]


def test_it_waits_for_enough() -> None:
    harness = three_batches()
    one = len(harness.batch(b"x"))
    waiting = wait_for(harness, min_bytes=one + 1)
    harness.produce_bytes("t", harness.batch(b"x"), partition=1)
    assert waiting.sizes is None
    harness.produce_bytes("t", harness.batch(b"x"), partition=1)
    assert waiting.sizes == [2 * one]


def test_not_enough_in_time_is_what_there_is() -> None:
    harness = three_batches()
    waiting = Waiting(harness, fetch_partition(), max_wait_ms=300, min_bytes=100_000)
    harness.broker.advance(300)
    assert waiting.sizes == [3 * BATCH]


@pytest.mark.parametrize(
    "more",
    [{"min_bytes": 0}, {"min_bytes": -1}, {"max_wait_ms": 0}, {"max_wait_ms": -5}],
)
def test_what_does_not_wait(more: dict[str, int]) -> None:
    assert wait_for(three_batches(), **more).sizes == [0]


def test_nothing_asked_is_answered_at_once() -> None:
    assert Waiting(three_batches(), max_wait_ms=300, min_bytes=1).sizes == []


def test_an_error_ends_the_waiting_a_missing_partition_does_not() -> None:
    harness = three_batches()
    ahead = fetch_partition(partition=1, current_leader_epoch=3)
    assert Waiting(harness, ahead, max_wait_ms=300, min_bytes=1).sizes == [0]
    missing = Waiting(
        harness,
        fetch_partition(partition=1),
        fetch_partition(partition=9),
        max_wait_ms=300,
        min_bytes=1,
    )
    assert missing.sizes is None
    harness.broker.advance(300)
    assert missing.sizes == [0, 0]


@pytest.mark.parametrize(
    ("offset", "isolation_level", "waits"),
    [(2, 1, True), (3, 1, False), (4, 1, False), (4, 0, True)],
)
def test_beyond_what_is_decided_nothing_is_waited_for(
    offset: int, isolation_level: int, *, waits: bool
) -> None:
    """A read_committed client between the last stable offset and the high watermark: nothing for
    it, at once and each time."""
    harness = BrokerHarness({"t": 1})
    harness.produce_bytes("t", harness.batch(b"v0", b"v1"))
    topic = harness.broker.core.broker.catalog.topics["t"]
    log = harness.broker.core.broker.logs.of(topic, 0)
    assert log is not None
    undecided = harness.batch(b"v2", b"v3", producer_id=5, producer_epoch=0, attributes=0x10)
    log.restore(with_base_offset(undecided, 2, 0))
    assert (log.last_stable_offset, log.high_watermark) == (2, 4)
    waiting = Waiting(
        harness,
        fetch_partition(offset),
        isolation_level=isolation_level,
        max_wait_ms=300,
        min_bytes=1,
    )
    assert waiting.sizes == (None if waits else [0])


def test_a_deleted_topic_is_noticed_while_waiting() -> None:
    harness = three_batches()
    waiting = wait_for(harness)
    harness.broker.delete_topic("t")
    harness.broker.advance(300)
    assert (
        waiting.sink.reply.response.responses[0].partitions[0].error_code
        == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a_lost_connection_takes_its_fetch_along() -> None:
    harness = three_batches()
    waiting = wait_for(harness)
    harness.broker.driver.disconnect(waiting.number)
    assert harness.broker.core.parked_requests == 0
    harness.broker.advance(1000)
    assert waiting.sizes is None


# -- sessions ------------------------------------------------------------------------------------


class Session:
    """Fetches of topic ``t`` with a session; returns partition -> bytes."""

    def __init__(self, harness: BrokerHarness) -> None:
        self.harness = harness
        self.session_id = 0
        self.epoch = 0

    def fetch(self, *partitions: Any, forget: tuple[int, ...] = (), **more: Any) -> Any:
        forgotten = (FetchRequestForgottenTopic(topic="t", partitions=forget),) if forget else ()
        request = self.harness.fetch_request(
            *partitions,
            session_id=more.pop("session_id", self.session_id),
            session_epoch=more.pop("session_epoch", self.epoch),
            forgotten_topics_data=forgotten,
        )
        response = self.harness.ask(request, more.pop("version", 12))
        if not response.error_code:
            self.session_id = response.session_id
            self.epoch += 1
        return response

    def told(self, *partitions: Any, **more: Any) -> dict[int, int]:
        response = self.fetch(*partitions, **more)
        assert response.error_code == 0
        return {p.partition_index: len(p.records) for t in response.responses for p in t.partitions}


def opened() -> Session:
    session = Session(three_batches())
    both = fetch_partition(), fetch_partition(partition=1)
    assert session.told(*both) == {0: 3 * BATCH, 1: 0}
    assert session.session_id > 0
    return session


def test_a_session_tells_only_what_is_new() -> None:
    session = opened()
    assert session.told() == {0: 3 * BATCH}, "it is not said again that partition 1 is empty"
    assert session.told(fetch_partition(6)) == {}
    session.harness.produce_bytes("t", session.harness.batch(b"z"), partition=1)
    size = len(session.harness.batch(b"z"))
    assert session.told() == {1: size}
    assert session.told(fetch_partition(1, partition=1)) == {}


def test_who_delivered_goes_to_the_end() -> None:
    session = opened()
    assert session.told() == {0: 3 * BATCH}
    session.harness.produce_bytes("t", session.harness.batch(b"z"), partition=1)
    response = session.fetch(fetch_partition(0))
    assert [p.partition_index for p in response.responses[0].partitions] == [1, 0]


def test_forgetting() -> None:
    session = opened()
    assert session.told(forget=(0,)) == {}
    assert session.told(forget=(1,)) == {}
    assert session.session_id == 0, "a session that wants nothing is over"


def test_an_error_is_told_again_until_it_is_gone() -> None:
    session = opened()
    for _ in range(2):
        response = session.fetch(*([fetch_partition(partition=2)] if _ == 0 else []))
        errors = [p for p in response.responses[0].partitions if p.error_code]
        assert [(p.partition_index, p.error_code) for p in errors] == [(2, 3)]
    session.harness.broker.add_partitions("t", 3)
    assert session.told()[2] == 0


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"session_epoch": 9}, 71),
        ({"session_epoch": 2}, 71),
        ({"session_id": 999}, 70),
        ({"session_id": 0, "session_epoch": 1}, 70),
        ({"session_id": 0, "session_epoch": -2}, 70),
        ({"version": 13}, 106),
    ],
)
def test_out_of_step(more: dict[str, Any], code: int) -> None:
    session = opened()
    response = session.fetch(**more)
    assert (response.error_code, response.session_id) == (code, 0)
    assert session.told() == {0: 3 * BATCH}, "the session goes on where it was"


def test_closing_a_session() -> None:
    session = opened()
    old = session.session_id
    response = session.fetch(fetch_partition(), session_epoch=-1)
    assert response.session_id == 0
    assert (
        session.fetch(session_id=old, session_epoch=2).error_code
        == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )
    assert session.fetch(session_id=123, session_epoch=-1).error_code == 0


def test_opening_another_closes_the_one_named() -> None:
    session = opened()
    old = session.session_id
    session.fetch(fetch_partition(), session_epoch=0)
    assert session.session_id not in (0, old)
    assert (
        session.fetch(session_id=old, session_epoch=1).error_code
        == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    )


def test_a_restarted_broker_knows_no_sessions() -> None:
    session = opened()
    session.harness.broker.restart()
    session.harness.connection = session.harness.broker.connect()
    assert session.fetch().error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_without_a_free_slot_there_is_no_session() -> None:
    session = Session(three_batches(max_incremental_fetch_session_cache_slots="0"))
    assert session.told(fetch_partition()) == {0: 3 * BATCH}
    assert session.session_id == 0


@pytest.mark.asyncio
async def test_a_fetch_may_be_awaited() -> None:
    harness = three_batches()
    got: list[Any] = []

    async with anyio.create_task_group() as tasks:

        async def fetch() -> None:
            request = harness.fetch_request(
                fetch_partition(partition=1), max_wait_ms=60_000, min_bytes=1
            )
            got.append(await harness.connection.request(request, 12))

        tasks.start_soon(fetch)
        await harness.broker.wait_for(lambda: harness.broker.core.parked_requests == 1)
        harness.broker.produce("t", b"x", partition=1)
    assert got[0].responses[0].partitions[0].records
