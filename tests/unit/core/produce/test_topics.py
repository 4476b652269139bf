"""The topics that are written to: when they are known, forgotten, and which partition is chosen."""

from __future__ import annotations

import pytest

from kip848_client.core.cluster import ClusterChanged, LeadersNotLearnt, LearnLeaders
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._model import ProduceSettings
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, DeliveryTimedOut, RequestTimedOut
from tests.unit.core.produce._harness import Harness, batch_bytes, tid, tp


def test_how_many_partitions_there_are_is_known_when_metadata_told() -> None:
    h = Harness(partitions=3, start=False)
    assert "t" not in h.core.routes
    h.want("t", ticket=4)
    assert [each.topics for each in h.all(LearnLeaders)] == [frozenset({"t"})]
    assert h.tickets == [4]
    assert h.core.routes["t"].partitions == (tp(0), tp(1), tp(2))
    h.want("t", ticket=5)
    assert h.tickets == [4, 5]
    assert len(h.all(LearnLeaders)) == 1


def test_how_many_there_are_by_now_is_asked_even_if_it_is_known() -> None:
    h = Harness(partitions=1)
    asked = len(h.all(LearnLeaders))
    h.topics["t"][1][1] = (2, 5)
    h.post(ev.TopicWanted(5, "t", h.now + 1_000, refresh=True))
    h.advance(200)
    assert h.tickets[-1] == 5
    assert len(h.core.routes["t"].partitions) == 2
    (question,) = h.all(LearnLeaders)[asked:]
    assert question.topics | question.to_create == {"t"}
    assert not question.to_create, "somebody may have deleted it"


def test_a_topic_that_is_created_late_is_waited_for() -> None:
    h = Harness()
    h.want("u", ticket=4)
    h.advance(300)
    assert 4 not in h.tickets
    h.topics["u"] = (tid(2), {0: (1, 0)})
    h.advance(1_000)
    assert 4 in h.tickets


def test_a_topic_that_is_not_there_is_told_at_the_deadline() -> None:
    h = Harness()
    h.want("u", ticket=4, ms=500)
    h.advance(499)
    assert 4 not in h.refused
    h.advance(1)
    error = h.refused[4]
    assert isinstance(error, BrokerError)
    assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    h.advance(60_000)
    assert len(h.all(LearnLeaders)) < 80


def test_records_of_a_topic_that_was_deleted_say_so() -> None:
    h = Harness()
    h.send("a")
    h.codes["t"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    while not h.failed:
        if h.open:
            h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
        h.advance(500)
    (error,) = h.failed.values()
    assert isinstance(error, DeliveryTimedOut)
    assert isinstance(error.cause, BrokerError)
    assert error.cause.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert str(error.cause) in str(error)


def test_of_a_topic_that_is_there_nothing_is_said() -> None:
    h = Harness()
    h.send("a")
    while not h.failed:
        if h.open:
            h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        h.advance(500)
    (error,) = h.failed.values()
    assert isinstance(error, DeliveryTimedOut)
    assert error.cause is None


def test_where_no_broker_answers_that_is_told_at_the_deadline() -> None:
    h = Harness(start=False)
    h.answers_metadata = False
    h.want("t", ticket=4, ms=500)
    h.post(LeadersNotLearnt(h.all(LearnLeaders)[-1].number, "all of them are down"))
    h.advance(500)
    error = h.refused[4]
    assert isinstance(error, RequestTimedOut)
    assert "all of them are down" in str(error)


@pytest.mark.parametrize(
    "code", [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION]
)
def test_what_no_waiting_cures_is_told_at_once(code: ErrorCode) -> None:
    h = Harness()
    h.codes["u"] = code
    h.want("u", ticket=4)
    error = h.refused[4]
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert "topic u" in str(error)
    asked = len(h.all(LearnLeaders))
    h.advance(60_000)
    assert len(h.all(LearnLeaders)) == asked


# -- which may be created by asking --------------------------------------------------------------


def test_a_topic_that_is_waited_for_may_be_created_until_it_is_there() -> None:
    """A broker may fail to create it, e.g. while it does not know enough others."""
    h = Harness()
    h.want("u", ticket=4)
    h.advance(300)
    h.topics["u"] = (tid(2), {0: (1, 0)})
    h.advance(1_000)
    asked = [each for each in h.all(LearnLeaders) if "u" in each.topics]
    assert len(asked) > 2
    assert {each.to_create for each in asked} == {frozenset({"u"})}
    assert 4 in h.tickets


def test_a_topic_that_somebody_deletes_does_not_come_back_by_our_asking() -> None:
    h = Harness(ProduceSettings(linger_ms=0, metadata_max_age_ms=1_000))
    assert [each.to_create for each in h.all(LearnLeaders)] == [{"t"}]
    del h.topics["t"]
    h.append("one")
    h.answer(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    h.advance(10_000)
    h.want("t", ticket=5)  # nobody waits: it was there
    later = h.all(LearnLeaders)[1:]
    assert len(later) > 5
    assert {each.to_create for each in later} == {frozenset()}


def test_what_nobody_waits_for_any_more_is_not_created() -> None:
    h = Harness(ProduceSettings(metadata_max_age_ms=1_000))
    h.want("u", ticket=4, ms=100)
    h.advance(100)
    assert 4 in h.refused
    asked = len(h.all(LearnLeaders))
    h.advance(10_000)
    later = h.all(LearnLeaders)[asked + 1 :]  # one may have been due already
    assert any("u" in each.topics for each in later)
    assert {each.to_create for each in later} == {frozenset()}


def test_only_what_is_waited_for_is_created() -> None:
    h = Harness()
    h.topics["t"][1][0] = (-1, 6)
    h.learn()
    h.append("one")
    h.want("u", ticket=4)
    h.advance(1_000)
    both = [each for each in h.all(LearnLeaders) if each.topics == frozenset({"t", "u"})]
    assert both
    assert {each.to_create for each in both} == {frozenset({"u"})}


def test_a_question_that_was_lost_creates_when_it_is_asked_again() -> None:
    h = Harness(start=False)
    h.answers_metadata = False
    h.want("t", ticket=4, ms=60_000)
    h.post(LeadersNotLearnt(h.all(LearnLeaders)[-1].number, "down"))
    h.advance(1_000)
    assert [each.to_create for each in h.all(LearnLeaders)] == [{"t"}, {"t"}]
    h.post(ClusterChanged())
    assert [each.to_create for each in h.all(LearnLeaders)] == [{"t"}, {"t"}, {"t"}]


# -- when they are forgotten ---------------------------------------------------------------------


def test_who_gives_up_is_not_told() -> None:
    h = Harness()
    h.want("u", ticket=4, ms=500)
    h.post(ev.WaitEnded(4))
    h.advance(1_000)
    assert 4 not in h.refused


def test_a_topic_that_nobody_uses_is_forgotten() -> None:
    settings = ProduceSettings(metadata_max_age_ms=1_000, metadata_max_idle_ms=5_000)
    h = Harness(settings)
    h.advance(4_500)
    asked = len(h.all(LearnLeaders))
    assert asked == 5
    h.send("one")
    h.answer()
    h.advance(4_900)
    assert "t" in h.core.routes
    h.advance(1_000)
    assert "t" not in h.core.routes
    asked = len(h.all(LearnLeaders))
    h.advance(60_000)
    assert len(h.all(LearnLeaders)) == asked
    assert h.core.deadline_ms is None


def test_a_topic_with_a_batch_on_its_way_is_not_forgotten() -> None:
    h = Harness(ProduceSettings(metadata_max_idle_ms=5_000))
    h.send("one")
    h.advance(20_000)
    assert "t" in h.core.routes


def test_a_topic_that_comes_back_goes_on_with_its_numbers() -> None:
    """The broker has not forgotten them."""
    h = Harness(ProduceSettings(metadata_max_idle_ms=5_000))
    h.send("one")
    h.answer()
    h.advance(20_000)
    h.want("t", ticket=5)
    assert h.send("two").first == 1


def test_a_topic_that_was_created_again_is_written_to() -> None:
    h = Harness(ProduceSettings(linger_ms=0))
    h.send("one")
    h.answer()
    h.advance(1_000)
    h.topics["t"] = (tid(9), {0: (2, 0)})
    h.append("two")
    h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.advance(1_000)
    assert [(each.node, each.batches[0].topic_id) for each in h.open] == [(2, tid(9))]


@pytest.mark.parametrize("is_told", [False, True])
def test_of_a_topic_that_was_created_again_one_batch_is_on_its_way_until_it_is_known(
    *, is_told: bool
) -> None:
    """Its brokers do not know this producer, and take any first sequence number: of two batches the
    second one may be written alone. ``is_told``: metadata tells of the new topic, not a broker."""
    h = Harness(ProduceSettings(linger_ms=0))
    h.send("one")
    h.answer()
    h.advance(1_000)
    h.topics["t"] = (tid(9), {0: (1, 0)})
    if is_told:
        h.learn()
    h.append("two")
    if not is_told:
        h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.advance(1_000)
    h.append("three")
    h.advance(1_000)
    (first,) = h.open
    assert first.batches[0].topic_id == tid(9)
    assert h.batch(request=first).values == ["two"]
    h.answer()
    (second,) = h.open
    assert h.batch(request=second).values == ["three"]
    h.append("four")
    assert len(h.open) == 2, "the broker knows us by now"


def test_a_batch_waits_for_a_leader() -> None:
    h = Harness(ProduceSettings(linger_ms=0))
    h.topics["t"][1][0] = (-1, 6)
    h.learn()
    h.append("one")
    h.advance(3_000)
    assert not h.open
    assert len(h.all(LearnLeaders)) < 10
    h.topics["t"][1][0] = (3, 7)
    h.advance(1_100)
    assert [each.node for each in h.open] == [3]


def test_another_cluster_is_asked_anew() -> None:
    h = Harness(ProduceSettings(linger_ms=0))
    h.topics["t"][1][0] = (3, 1)
    h.post(ClusterChanged())
    h.append("one")
    assert [each.node for each in h.open] == [3]


# -- which partition -----------------------------------------------------------------------------


def test_a_key_has_its_partition() -> None:
    route = Harness(partitions=10).core.routes["t"]
    assert route.of(b"foobar") == tp((-790332482 & 0x7FFFFFFF) % 10)
    assert route.of(b"21") == tp((-973932308 & 0x7FFFFFFF) % 10)


def test_records_without_a_key_stay_together_until_the_batch_is_full() -> None:
    drawn = iter([1, 1, 0, 0, 1, 1])
    settings = ProduceSettings(batch_bytes=batch_bytes(3), linger_ms=1_000)
    h = Harness(settings, partitions=3, choose=lambda _: next(drawn))
    placed = [h.append_anywhere("abc") for _ in range(8)]
    assert [each.tp.partition for each in placed] == [1, 1, 1, 0, 0, 0, 2, 2]
    assert [each.row for each in placed] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert [len(h.batch(tp(n), h.open[at]).values) for at, n in enumerate((1, 0))] == [3, 3]


def test_a_record_that_does_not_fit_goes_into_the_batch_that_another_partition_has_open() -> None:
    drawn = iter([0, 0, 0, 0])
    settings = ProduceSettings(batch_bytes=batch_bytes(3), linger_ms=1_000)
    h = Harness(settings, partitions=2, choose=lambda _: next(drawn))
    h.append("key", to=tp(1))
    before = [h.append_anywhere("abc") for _ in range(3)]
    last = h.append_anywhere("abc")
    assert {each.tp for each in before} == {tp(0)}
    assert last == (1, 1, tp(1), True)
    assert [each.tp for each in h.open[0].batches] == [tp(0)]


def test_a_record_without_a_key_waits_for_room_wherever_it_goes() -> None:
    settings = ProduceSettings(
        batch_bytes=batch_bytes(3), buffer_bytes=2 * batch_bytes(3) - 1, linger_ms=1_000
    )
    h = Harness(settings, partitions=2)
    for _ in range(3):
        h.append_anywhere("abc")
    assert h.try_append_anywhere("abc") is None
    h.answer()
    assert h.append_anywhere("abc").tp == tp(1)


def test_records_without_a_key_go_where_there_is_a_leader() -> None:
    h = Harness(partitions=3, leader=lambda number: 2 if number == 2 else -1)
    assert h.core.routes["t"].of(None) == tp(2)


def test_partitions_without_a_leader_are_asked_for_until_they_have_one() -> None:
    """Nobody writes to them meanwhile, so no batch waits that would ask."""
    h = Harness(partitions=3, leader=lambda number: -1 if number == 1 else 2)
    assert h.core.routes["t"].led == [tp(0), tp(2)]
    h.advance(10_000)
    asked = len(h.all(LearnLeaders))
    assert 8 < asked < 20
    h.topics["t"][1][1] = (3, 6)
    h.advance(1_500)
    assert h.core.routes["t"].led == [tp(0), tp(1), tp(2)]
    asked = len(h.all(LearnLeaders))
    h.advance(60_000)
    assert len(h.all(LearnLeaders)) == asked


def test_a_partition_that_is_behind_gets_less() -> None:
    drawn = iter([0, 0, 0, 1])
    settings = ProduceSettings(batch_bytes=batch_bytes(3), linger_ms=1_000)
    h = Harness(settings, partitions=3, choose=lambda _: next(drawn))
    for _ in range(3):
        h.append_anywhere("abc")
    h.append(*["abc"] * 4, to=tp(1))
    assert h.append_anywhere("abc").tp == tp(2)  # 1 has a batch on its way


# -- waits, and the end --------------------------------------------------------------------------

MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_core_says_what_is_waited_for() -> None:
    h = Harness()
    assert h.core.waits() == {}
    assert not h.core.is_busy
    h.want("u", ticket=4)
    h.advance(300)
    (what,) = h.core.waits()
    assert what == "the partitions of topic u"
    assert "UNKNOWN_TOPIC_OR_PARTITION" in h.core.waits()[what][0]
    assert h.core.is_busy
    h.topics["u"] = (tid(2), {0: (1, 0)})
    h.advance(1_000)
    assert h.core.waits() == {}


def test_records_whose_topic_is_gone_are_waited_for() -> None:
    h = Harness()
    h.send("a")
    h.codes["t"] = MISSING
    h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.advance(1_000)
    assert any("t-" in what for what in h.core.waits())
    assert any("UNKNOWN_TOPIC" in why for why, _ in h.core.waits().values())


@pytest.mark.parametrize("event", [ev.EndsSoon(), ev.CloseRequested(99, 60_000)])
def test_who_stops_does_not_wait_for_a_topic_that_is_not_there(event: ev.Event) -> None:
    h = Harness()
    h.want("u", ticket=4, ms=60_000)
    h.advance(1_500)
    began_ms = h.now
    h.post(event)
    assert h.now == began_ms
    error = h.refused[4]
    assert isinstance(error, BrokerError)
    assert error.code == MISSING


def test_records_of_a_topic_that_is_gone_fail_at_once_when_it_closes() -> None:
    h = Harness()
    h.send("a")
    h.codes["t"] = MISSING
    h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.advance(1_500)
    assert not h.failed
    if h.open:
        h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.post(ev.CloseRequested(99, h.now + 60_000))
    h.advance(10)
    (error,) = h.failed.values()
    assert isinstance(error, BrokerError)
    assert error.code == MISSING
    assert 99 in h.tickets


def test_a_topic_that_is_just_being_created_is_waited_for_when_it_ends_soon() -> None:
    h = Harness()
    h.post(ev.EndsSoon())
    h.want("u", ticket=4, ms=60_000)
    h.advance(300)
    h.topics["u"] = (tid(2), {0: (1, 0)})
    h.advance(400)
    assert 4 in h.tickets
    assert 4 not in h.refused


def test_a_missing_topic_is_given_up_a_second_after_that_was_told_first() -> None:
    h = Harness()
    h.post(ev.EndsSoon())
    h.want("u", ticket=4, ms=60_000)
    h.advance(900)
    assert 4 not in h.refused
    h.advance(300)
    assert 4 in h.refused
