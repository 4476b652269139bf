"""The options of the source."""

from __future__ import annotations

import pickle

import pytest

from kip848_client.config import (
    CONSUMER_PROPERTIES,
    CONSUMER_WITHOUT_EFFECT,
    PRODUCER_PROPERTIES,
    PRODUCER_WITHOUT_EFFECT,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._offset_limits import BEGIN, END, OffsetRangeLimit
from kip848_client.spark.source.core._options import SourceOptions, source_options

_TP = TopicPartition
_BASE = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "b, a,a"}


def _stream(**said: str) -> SourceOptions:
    return source_options(_BASE | said, is_stream=True)


def test_the_defaults_are_those_of_sparks_own_source() -> None:
    stream = source_options(_BASE, is_stream=True)
    assert stream.topics == ("a", "b")
    assert not stream.is_shared
    assert stream.starting == OffsetRangeLimit(everywhere=END, option="startingOffsets")
    assert stream.fails_on_data_loss
    assert not stream.with_headers
    assert stream.poll_timeout_ms == 120_000
    assert stream.delay_ms == 900_000
    batch = source_options(_BASE, is_stream=False)
    assert batch.starting.everywhere == BEGIN
    assert batch.ending.everywhere == END


def test_names_of_options_may_be_written_in_any_case() -> None:
    found = source_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a", "MaxOffsetsPerTrigger": "7"},
        is_stream=True,
    )
    assert found.limit == 7
    assert found.client_settings()["bootstrap_servers"] == "h:1"


def test_a_stream_is_a_member_of_its_group_only_where_its_options_say_so() -> None:
    said = _BASE | {"kafka.group.id": "g"}
    for is_stream in (True, False):
        found = source_options(said, is_stream=is_stream)
        assert (found.ownership, found.sets_ownership) == ("exclusive", False)
    found = source_options(said | {"ownership": "Exclusive"}, is_stream=True)
    assert (found.ownership, found.sets_ownership) == ("exclusive", True)
    found = source_options(said | {"ownership": "Shared"}, is_stream=True)
    assert (found.ownership, found.sets_ownership, found.is_shared) == ("shared", True, True)


def test_what_executors_get_can_be_pickled_and_has_kafkas_own_settings() -> None:
    found = _stream(
        **{
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": 'x required username="u" password="p";',
            "kafka.fetch.max.bytes": "1000",
            "kafka.isolation.level": "read_committed",
            "kafka.check.crcs": "false",
        }
    )
    settings = pickle.loads(pickle.dumps(found)).client_settings()
    assert settings["sasl_plain_password"] == "p"
    assert settings["fetch_max_bytes"] == 1000
    assert settings["isolation_level"] == "read_committed"
    assert settings["check_crcs"] is False


def test_where_a_query_begins() -> None:
    offsets = _stream(startingOffsets='{"a": {"0": 23, "1": -2}, "b": {"0": -1}}').starting
    assert offsets.offsets == {_TP("a", 0): 23, _TP("a", 1): BEGIN, _TP("b", 0): END}
    times = _stream(startingOffsetsByTimestamp='{"a": {"0": 1000}}').starting
    assert times.times == {_TP("a", 0): 1000}
    assert not times.later_is_end
    both = _stream(
        startingTimestamp="99",
        startingOffsets="earliest",
        startingOffsetsByTimestampStrategy="latest",
    ).starting
    assert (both.time_ms, both.later_is_end, both.everywhere) == (99, True, None)


def test_of_two_options_for_one_thing_the_more_precise_counts() -> None:
    """A time before times by partition before offsets, as in Spark; ours before Spark's."""
    for prefix in ("starting", "ending"):
        offsets = {f"{prefix}Offsets": '{"a": {"0": 23}}'}
        times = {**offsets, f"{prefix}OffsetsByTimestamp": '{"a": {"0": 1000}}'}
        time = {**times, f"{prefix}Timestamp": "99"}
        found = [getattr(_stream(**said), prefix) for said in (offsets, times, time)]
        assert [each.offsets for each in found] == [{_TP("a", 0): 23}, {}, {}]
        assert [each.times for each in found] == [{}, {_TP("a", 0): 1000}, {}]
        assert [each.time_ms for each in found] == [None, None, 99]
    assert _stream(minPartitions="7").least_tasks == 7
    assert _stream(minPartitions="7", tasks="3").tasks == 3


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"assign": '{"a": [0]}'}, "got assign and subscribe"),
        ({"subscribe": ""}, "subscribe is empty"),
        ({"subscribe": "a,,b"}, "names an empty topic"),
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"kafka.isolation.levl": "x"}, "did you mean kafka.isolation.level"),
        ({"kafka.max.poll.recs": "5"}, "has no option 'kafka.max.poll.recs'$"),  # nothing is near
        ({"kafka.ssl.engine.factory.class": "x"}, "certificates and keys are in PEM"),
        ({"kafka.allow.auto.create.topics": "1"}, "neither true nor false"),
        *(
            (
                {"kafka.security.protocol": "SSL", f"kafka.ssl.{store}.type": kind},
                rf"ssl\.{store}\.type='{kind}' is a store, which Python cannot read; make a PEM",
            )
            for store in ("truststore", "keystore")
            for kind in ("JKS", "PKCS12")
        ),
        ({"kafka.auto.offset.reset": "latest"}, "startingOffsets"),
        ({"kafka.group.protocol": "classic"}, "KIP-848"),
        ({"kafka.fetch.max.bytes": "many"}, "kafka.fetch.max.bytes|fetch.max.bytes='many'"),
        ({"kafka.check.crcs": "1"}, "neither true nor false"),
        ({"startingOffsets": "sometime"}, "startingOffsets='sometime'"),
        ({"startingOffsets": "{"}, "startingOffsets is not JSON"),
        ({"startingOffsets": '{"a": 5}'}, "not an object by partition"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "got -3"),
        ({"startingOffsets": '{"a": {"x": 3}}'}, "'x' of 'a' is not a partition"),
        ({"startingOffsets": "{}"}, "names no partition"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, r"-1 \(the end\)"),
        ({"endingOffsets": "earliest"}, "endingOffsets='earliest'"),
        ({"startingTimestamp": "-5"}, "milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "x"}, "'error' or 'latest', got"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss must be true or false, got 'yes'"),
        ({"maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a positive integer, got '0'"),
        ({"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "9"}, "is more than"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay='soon'"),
        ({"ownership": "mine"}, "'shared' or 'exclusive', got 'mine'"),
        ({"ownership": "shared"}, "set kafka.group.id"),
        ({"groupIdPrefix": "x"}, "kafka.group.id"),
        ({"leaveTimeout": "5"}, "has no option 'leavetimeout'"),
        ({"kafka.group.id": ""}, "kafka.group.id is empty"),
        ({"kafka.sasl.mechanism": "PLAIN", "kafka.security.protocol": "SASL_SSL"}, "jaas"),
    ],
)
def test_what_cannot_be_meant_is_named(said: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        source_options(_BASE | said, is_stream=True)


def test_what_a_batch_query_cannot_be_asked() -> None:
    with pytest.raises(ConfigError, match="would read nothing"):
        source_options(_BASE | {"startingOffsets": "latest"}, is_stream=False)
    with pytest.raises(ConfigError, match="is for streams"):
        source_options(_BASE | {"ownership": "shared", "kafka.group.id": "g"}, is_stream=False)


def test_a_member_is_given_its_partitions() -> None:
    said = {"kafka.bootstrap.servers": "h:1", "assign": '{"a": [1, 0]}'}
    assert source_options(said, is_stream=True).assigned == (_TP("a", 0), _TP("a", 1))
    group = {"kafka.group.id": "g"}
    assert not source_options(said | group, is_stream=True).is_shared
    with pytest.raises(ConfigError, match="ownership=shared cannot be used with assign"):
        source_options(said | group | {"ownership": "shared"}, is_stream=True)


@pytest.mark.parametrize("said", ['{"a": 5}', '{"a": [-1]}', "[]", '{"a": ["0"]}', "{}"])
def test_partitions_that_are_none_are_refused(said: str) -> None:
    with pytest.raises(ConfigError, match="assign"):
        source_options({"kafka.bootstrap.servers": "h:1", "assign": said}, is_stream=True)


@pytest.mark.parametrize(
    ("said", "delay_ms"), [("15m", 900_000), ("90s", 90_000), ("250ms", 250), ("PT1H", 3_600_000)]
)
def test_a_delay_is_spoken_as_in_spark(said: str, delay_ms: int) -> None:
    assert _stream(maxTriggerDelay=said).delay_ms == delay_ms


def test_properties_without_effect_are_accepted_and_named() -> None:
    found = _stream(
        **{
            "kafka.max.poll.records": "500",
            "kafka.session.timeout.ms": "30000",
            "kafka.ssl.keystore.password": "hidden",
            "kafka.allow.auto.create.topics": "false",
            "kafka.metadata.recovery.strategy": "none",
            "kafka.metadata.recovery.rebootstrap.trigger.ms": "5000",
        }
    )
    assert set(found.without_effect) == {
        "max.poll.records",
        "session.timeout.ms",
        "ssl.keystore.password",
    }
    assert "hidden" not in repr(found)
    settings = found.client_settings()
    assert settings["allow_auto_create_topics"] is False
    assert settings["metadata_recovery_strategy"] == "none"
    assert settings["metadata_recovery_rebootstrap_trigger_ms"] == 5000


def test_each_property_without_effect_has_none() -> None:
    assert not set(CONSUMER_WITHOUT_EFFECT).intersection(CONSUMER_PROPERTIES)
    assert not set(PRODUCER_WITHOUT_EFFECT).intersection(PRODUCER_PROPERTIES)
