"""Each record against the definitions of its own release: Kafka's jar is the byte oracle.

The jar's definition reads what we wrote, must find the same in it, and must write the same bytes.
"""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups.record_format import encode_record
from mock_coordinator.core.profiles import PROFILES
from tests.scenarios.broker_log import KEY_NAMES, read_by_definitions
from tests.support.examples import examples
from tests.support.jar_codec import JarCodec
from tests.support.kafka_jars import kafka_jar
from tests.support.pytest_kafka import skip_without_kafka
from tests.unit.mock_coordinator.record_format.any_record import any_record

EVERY_PROFILE = pytest.mark.parametrize("profile", tuple(PROFILES))


def written_again(codec: JarCodec, name: str, data: bytes) -> bytes:
    version = int.from_bytes(data[:2], "big")
    return data[:2] + codec.encode(name, version, codec.decode(name, version, data[2:]))


@functools.cache
def codec_of(release: str) -> JarCodec:
    with skip_without_kafka():
        return JarCodec(kafka_jar(release, "kafka-group-coordinator"))


@pytest.mark.real_kafka
@EVERY_PROFILE
@settings(max_examples=examples(100), database=None)
@given(data=st.data())
def test_records_equal_the_definitions(profile: str, data: st.DataObject) -> None:
    kafka = PROFILES[profile]
    codec = codec_of(kafka.release)
    record = data.draw(any_record(kafka))
    key, value = encode_record(kafka, record)
    assert read_by_definitions(codec, key, value) == record
    name = KEY_NAMES[record.KEY_TYPE]
    version = codec.schemas[f"{name}Key"].versions.low  # in 4.0 the type itself
    read_key = codec.decode(f"{name}Key", version, key[2:])
    assert codec.encode(f"{name}Key", version, read_key) == key[2:]
    if value is not None:
        assert written_again(codec, f"{name}Value", value) == value
