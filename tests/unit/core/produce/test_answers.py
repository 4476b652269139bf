"""What comes of answers, and that nothing comes of nonsense."""

from __future__ import annotations

import pytest

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Api, Reaction, may_be_written, reaction
from kip848_client.core.produce._model import Place, Produced, ProduceSettings
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, ConfigError, DeliveryTimedOut
from tests.unit.core.produce._harness import Harness, batch_bytes, tp

AT_ONCE = ProduceSettings(linger_ms=0)
RETRIED = (
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
REFUSED = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    12_345,
)


@pytest.mark.parametrize("code", RETRIED)
def test_what_passes_is_tried_again(code: int) -> None:
    h = Harness(AT_ONCE)
    first = h.send("one")
    h.answer(code)
    assert not h.open
    h.advance(100)
    assert h.batch() == first
    h.answer()
    assert h.done.keys() == {1}


@pytest.mark.parametrize("code", REFUSED)
def test_what_does_not_pass_is_told(code: int) -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    h.answer(code, error_message="the broker's words")
    error = h.failed[1]
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert "t-0: the broker's words" in str(error)
    h.advance(10_000)
    assert not h.open
    assert h.core.snapshot().held_bytes == 0


@pytest.mark.parametrize("code", [*RETRIED, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER])
def test_no_answer_makes_a_hot_loop(code: int) -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=20_000))
    h.append("one")
    steps = 0
    while not h.failed:
        while h.open:
            h.answer(code)
        before = h.now
        h.advance(10)
        steps += 1
        assert h.now > before
    assert steps <= 2_001
    assert len(h.all(do.SendProduce)) < 30
    assert len(h.all(LearnLeaders)) < 60
    assert isinstance(h.failed[1], DeliveryTimedOut)
    assert h.core.snapshot().held_bytes == 0


def test_a_broker_that_refuses_everything_does_not_make_a_hot_loop_of_hints() -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=5_000))
    h.append("one")
    epoch = 5
    while not h.failed:
        while h.open:
            epoch += 1
            to = 1 + epoch % 3
            h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(to, epoch))
        h.advance(10)
    assert len(h.all(do.SendProduce)) < 60


def test_a_hint_is_followed_at_once() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 6))
    assert [each.node for each in h.open] == [2]
    assert len(h.all(LearnLeaders)) == 1


@pytest.mark.parametrize("leader", [(2, 5), (2, -1), (9, 6), (-1, 6), (1, 6)])
def test_a_hint_that_is_old_or_leads_nowhere_is_not_followed(leader: tuple[int, int]) -> None:
    h = Harness(AT_ONCE)
    h.answers_metadata = False
    h.send("one")
    h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=leader)
    assert not h.open
    assert len(h.all(LearnLeaders)) == 1  # the next question has its pause
    h.advance(99)
    assert not h.open
    h.advance(1)
    assert [each.node for each in h.open] == [1]


def test_all_that_was_on_its_way_to_the_old_leader_follows_one_hint() -> None:
    h = Harness(AT_ONCE)
    h.send("zer")
    h.answer()
    h.append("one")
    h.append("two")
    h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 6))
    h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, leader=(2, 6))
    assert [(each.node, h.batch(request=each).values) for each in h.open] == [
        (2, ["one"]),
        (2, ["two"]),
    ]
    h.answer()
    h.answer()
    assert len(h.done) == 3


def test_who_rests_because_of_a_broker_goes_on_when_another_one_leads() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    h.topics["t"][1][0] = (2, 6)
    h.advance(1_000)
    h.lose()
    assert [each.node for each in h.open] == [2]


def test_a_broker_that_does_not_answer_rests_longer_each_time() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    pauses: list[int] = []
    for _ in range(6):
        h.lose()
        began = h.now
        while not h.open:
            h.advance(10)
        pauses.append(h.now - began)
    assert pauses == [100, 200, 400, 800, 1_000, 1_000]


def test_a_connection_that_breaks_counts_once() -> None:
    h = Harness(AT_ONCE, partitions=5)
    for number in range(5):
        h.append("one", to=tp(number))
    assert len(h.open) == 5
    for _ in range(5):
        h.lose()
    h.advance(100)
    assert h.open


def test_what_the_broker_does_not_mention_is_sent_again() -> None:
    h = Harness(AT_ONCE)
    first = h.send("one")
    h.post(ev.ProduceAnswered(h.open.pop().produce, {tp(7): Produced(), tp(0, "u"): Produced(6)}))
    assert not h.done
    h.advance(100)
    assert h.batch() == first


@pytest.mark.parametrize(
    ("code", "may_be_there"),
    [
        (None, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS, False),
    ],
)
def test_what_a_first_try_may_have_written_is_not_sent_under_other_numbers(
    code: int | None, *, may_be_there: bool
) -> None:
    """The second try is refused as out of order: the broker may have forgotten what it has.
    ``code``: of the first try; ``None``: its answer did not mention the partition."""
    h = Harness(AT_ONCE)
    first = h.send("one")
    if code is None:
        h.post(ev.ProduceAnswered(h.open.pop().produce, {}))
    else:
        h.answer(code)
    h.advance(1_000)
    assert h.batch() == first
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    h.advance(1_000)
    if not may_be_there:
        assert h.batch().values == ["one"]
        assert h.batch() != first, "it has other numbers"
        return
    assert not h.open
    error = h.failed[1]
    assert isinstance(error, DeliveryTimedOut)
    assert error.maybe_written


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    request = h.open[0]
    h.answer()
    before = h.core.snapshot()
    assert h.post(ev.ProduceAnswered(request.produce, {tp(): Produced(base_offset=99)})) == ()
    assert h.post(ev.ProduceLost(request.produce, "late", maybe_sent=True)) == ()
    assert h.post(ev.ProduceAnswered(999, {})) == ()
    after = h.core.snapshot()
    assert after.stale_answers == before.stale_answers + 3
    assert after.partitions == before.partitions


def test_what_trying_again_does_not_cure_is_told() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    fatal = ConfigError("the login is refused")
    h.lose(fatal=fatal)
    assert h.failed == {1: fatal}


def test_records_that_are_to_blame_are_named() -> None:
    h = Harness()
    h.send("one", "two", "thr")
    h.answer(ErrorCode.INVALID_RECORD, record_errors={1: "no key", 77: "there is none"})
    (failed,) = h.all(do.BatchFailed)
    assert failed.culprits.keys() == {1}
    assert "t-0: no key" in str(failed.culprits[1])


# -- batches that are too large ------------------------------------------------------------------


def test_a_batch_that_is_too_large_is_split_and_its_parts_are_told() -> None:
    h = Harness()
    h.send("one", "two", "thr")
    h.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert h.all(do.BatchSplit) == [do.BatchSplit(1, ((2, 2), (3, 1)))]
    assert h.batch().values == ["one", "two"]
    h.answer(base=10)
    assert h.batch().values == ["thr"]
    assert h.batch().first == 2
    h.answer(base=17)
    assert h.done == {2: Place(10, -1), 3: Place(17, -1)}
    assert h.core.snapshot().held_bytes == 0


def test_a_flush_waits_for_the_parts() -> None:
    h = Harness()
    h.append("one", "two")
    h.post(ev.FlushRequested(9))
    h.answer(ErrorCode.MESSAGE_TOO_LARGE)
    h.answer()
    assert 9 not in h.tickets
    h.answer()
    assert 9 in h.tickets


def test_parts_stay_before_what_follows() -> None:
    h = Harness(ProduceSettings(batch_bytes=batch_bytes(4), linger_ms=0))
    h.send("zer")
    h.answer()
    h.core.append(h.now, tp(), h.now, None, b"one", ())
    h.append("two")
    h.post(ev.Appended())
    h.append("thr")
    h.answer(ErrorCode.MESSAGE_TOO_LARGE)
    sent: list[list[str]] = []
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, request=h.open[0])
    while len(h.done) < 4 and not h.failed:
        h.advance(1_000)
        sent.append(h.batch(request=h.open[0]).values)
        h.answer()
    assert sent == [["one"], ["two"], ["thr"]]


def test_a_single_record_that_is_too_large_is_told() -> None:
    h = Harness()
    h.send("one", "two")
    h.answer(ErrorCode.MESSAGE_TOO_LARGE)
    h.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert "max.message.bytes" in str(h.failed[2])
    h.advance(1_000)
    assert h.batch().values == ["two"]
    h.answer()
    assert h.done.keys() == {3}


# -- the table -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.DUPLICATE_SEQUENCE_NUMBER, Reaction.DONE),
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, Reaction.REORDER),
        (ErrorCode.UNKNOWN_PRODUCER_ID, Reaction.REORDER),
        (ErrorCode.MESSAGE_TOO_LARGE, Reaction.SPLIT),
        (ErrorCode.REQUEST_TIMED_OUT, Reaction.RETRY),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Reaction.REFRESH),
        (ErrorCode.INVALID_RECORD, Reaction.ABORT_AND_BUMP),
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, Reaction.ABORT_AND_BUMP),
        (ErrorCode.INVALID_TXN_STATE, Reaction.ABORT),
        (ErrorCode.TRANSACTION_ABORTABLE, Reaction.ABORT),
        (ErrorCode.INVALID_PRODUCER_EPOCH, Reaction.ASK),
        (ErrorCode.PRODUCER_FENCED, Reaction.RECOVER),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, Reaction.FATAL),
        (54_321, Reaction.ABORT_AND_BUMP),
    ],
)
def test_what_a_code_of_produce_leads_to(code: int, expected: Reaction) -> None:
    assert reaction(Api.PRODUCE, code) is expected


def test_a_leader_that_lost_its_office_may_have_written_the_batch() -> None:
    assert may_be_written(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert may_be_written(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    assert not may_be_written(ErrorCode.NOT_ENOUGH_REPLICAS)


def test_how_long_records_have_waited_for_a_partition_is_known() -> None:
    """From the first refusal on; what is over by the time other records come does not count."""
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=2_000))
    what, begun_ms = "partition t-0 to accept records", h.now
    for _ in range(2):
        h.append("one")
        h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        h.advance(1_000)
        h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert h.core.waits()[what].since_ms == begun_ms
        h.advance(10_000)
        while h.open:
            h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        assert h.core.waits() == {}
        begun_ms = h.now


def test_how_long_a_partition_has_had_no_leader_is_known() -> None:
    h = Harness(ProduceSettings(linger_ms=0))
    h.topics["t"] = (h.topics["t"][0], {0: (-1, 6)})
    h.learn()
    begun_ms = h.now
    h.append("one")
    for _ in range(3):
        h.advance(1_000)
        assert h.core.waits()["the leader of partition t-0"].since_ms == begun_ms
