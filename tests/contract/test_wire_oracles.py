"""The wire layer against two independent oracles: kio, and Kafka's own message definitions.

Every message of the registry, in every version, with random content: our bytes are the oracle's
bytes, and the oracle's bytes are our message again. What an oracle cannot say is listed below and
the lists are exact, so a new release of kio, or a version that we add, shows up here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire._fields import FieldSpec as OurSpec
from kip848_client.core.wire._fields import field_specs
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.errors import UnsupportedVersion
from tests.contract.jar_bridge import by_our_names, from_jar_value, to_jar_value
from tests.contract.kio_bridge import kio_class, kio_read, kio_write, to_kio
from tests.contract.message_strategies import (
    draft_classes,
    fitted,
    is_draft_field,
    is_flexible,
    kafka_classes,
    messages,
    versions_of,
)
from tests.support.examples import examples
from tests.support.jar_codec import JarCodec, JarCodecError, default_of
from tests.support.jar_schemas import FieldSpec

JarOf = Callable[[str], Path]

KAFKA_CLASSES: Final = kafka_classes()
NEWEST: Final = "4.4.0"
OLDEST: Final = "4.0.2"

KIO_LACKS: Final = {
    "ApiVersions": {5},
    "DeleteGroups": {3},
    "TxnOffsetCommit": {6},
}
"""Versions that kio 0.6.5 has no classes for (the drafts aside)."""

OLDEST_LACKS: Final = {
    "AlterPartitionReassignments": {1},
    "ApiVersions": {5},
    "DeleteGroups": {3},
    "Fetch": {18},
    "InitProducerId": {6},
    "ListConfigResources": {0, 1},  # version 0 was called ListClientMetricsResources
    "ListOffsets": {11},
    "ListTransactions": {2},
    "OffsetCommit": {10},
    "OffsetFetch": {10},
    "Produce": {13},
    "TxnOffsetCommit": {6},
    "WriteTxnMarkers": {2},
}
"""Versions that the definitions of Kafka 4.0.2 do not have."""

UNSTABLE: Final = {"InitProducerId": 6}
"""Versions that Kafka 4.4 defines and offers only with ``unstable.api.versions.enable``."""

EACH_KAFKA_CLASS = pytest.mark.parametrize("cls", KAFKA_CLASSES, ids=lambda cls: cls.__name__)
EACH_DRAFT_CLASS = pytest.mark.parametrize("cls", draft_classes(), ids=lambda cls: cls.__name__)

SETTINGS = settings(
    max_examples=examples(60),
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="session")
def newest(kafka_clients_jar: JarOf) -> JarCodec:
    return JarCodec(kafka_clients_jar(NEWEST))


@pytest.fixture(scope="session")
def oldest(kafka_clients_jar: JarOf) -> JarCodec:
    return JarCodec(kafka_clients_jar(OLDEST))


def check_against_definitions(codec: JarCodec, cls: type[Any], message: Any) -> None:
    spec = codec.schemas.get(cls.__name__)
    for version in versions_of(cls):
        if spec is None or version not in spec.versions:
            continue
        kept = fitted(message, version)
        ours = encode(kept, version)
        theirs = codec.encode(cls.__name__, version, to_jar_value(kept, spec.fields))
        assert ours == theirs, f"v{version}"
        again = decode(cls, version, theirs)
        assert again == kept
        assert encode(again, version) == theirs
        read = codec.decode(cls.__name__, version, ours)
        assert from_jar_value(cls, read, spec.fields) == kept


@pytest.mark.real_kafka
@EACH_KAFKA_CLASS
def test_bytes_equal_those_of_the_newest_definitions(cls: type[Any], newest: JarCodec) -> None:
    @SETTINGS
    @given(messages(cls, drafts=False))
    def check(message: Any) -> None:
        check_against_definitions(newest, cls, message)

    check()


@pytest.mark.real_kafka
@EACH_KAFKA_CLASS
def test_bytes_equal_those_of_the_oldest_definitions(cls: type[Any], oldest: JarCodec) -> None:
    @settings(SETTINGS, max_examples=examples(15))
    @given(messages(cls, drafts=False))
    def check(message: Any) -> None:
        check_against_definitions(oldest, cls, message)

    check()


@pytest.mark.real_kafka
@EACH_KAFKA_CLASS
def test_what_a_version_cannot_carry_is_dropped_or_refused_alike(
    cls: type[Any], newest: JarCodec
) -> None:
    fields = newest.schemas[cls.__name__].fields

    @settings(SETTINGS, max_examples=examples(15))
    @given(messages(cls, drafts=False), st.sampled_from(list(versions_of(cls))))
    def check(message: Any, version: int) -> None:
        message = _without_nulls(message, version)
        value = to_jar_value(message, fields)
        try:
            theirs = newest.encode(cls.__name__, version, value)
        except JarCodecError:
            with pytest.raises(UnsupportedVersion):
                encode(message, version)
        else:
            assert encode(message, version) == theirs

    check()


def _without_nulls(message: Any, version: int) -> Any:
    """The message with the nulls of carried fields replaced: those are refused for their value."""
    kept = fitted(message, version)
    cls = type(message)
    mixed = {}
    for name, spec, _ in field_specs(cls):
        carried = version in spec.versions or version in spec.tagged
        mixed[name] = getattr(kept if carried else message, name)
    return cls(**mixed)


@pytest.mark.real_kafka
@EACH_KAFKA_CLASS
def test_fields_versions_and_defaults_are_those_of_the_definition(
    cls: type[Any], newest: JarCodec
) -> None:
    spec = newest.schemas[cls.__name__]
    assert spec.api_key == cls.API_KEY
    assert list(spec.versions) == list(versions_of(cls))
    flexible = [version for version in versions_of(cls) if version in spec.flexible]
    assert flexible == [version for version in versions_of(cls) if is_flexible(cls, version)]
    if spec.kind == "request":
        unstable = spec.versions.high if spec.unstable_latest else None
        assert UNSTABLE.get(_api_name(cls)) == unstable
    check_same_fields(cls, spec.fields, list(versions_of(cls)), flexible)


def check_same_fields(
    cls: type[Any], fields: tuple[FieldSpec, ...], versions: list[int], flexible: list[int]
) -> None:
    ours = [each for each in field_specs(cls) if not is_draft_field(each[1])]
    theirs = by_our_names(cls, fields)
    assert [name for name, _, _ in ours] == list(theirs), cls.__name__
    for name, spec, default in ours:
        where = f"{cls.__name__}.{name}"
        other = theirs[name]
        tagged = [version for version in flexible if version in other.tagged]
        body = [each for each in versions if each in other.versions and each not in tagged]
        assert _chosen(spec.tagged, flexible) == tagged, where
        carried = _chosen(spec.versions, versions)
        assert [each for each in carried if each not in tagged] == body, where
        present = sorted(body + tagged)
        assert _chosen(spec.nullable, present) == _chosen(other.nullable, present), where
        assert spec.tag == (-1 if other.tag is None else other.tag), where
        assert _kind(spec) == _their_kind(other), where
        if set(present) != set(versions):
            assert spec.ignorable == other.ignorable, where
        if isinstance(spec.element, type):
            check_same_fields(spec.element, other.fields, present, flexible)
        if other.name != "Records":  # always nullable, so null is our "nothing"
            assert _plain(default, other) == default_of(other), where


def _chosen(range_: Any, versions: list[int]) -> list[int]:
    return [version for version in versions if version in range_]


def _plain(default: Any, other: FieldSpec) -> Any:
    if default is None or isinstance(default, tuple):
        return default if default is None else list(default)
    return to_jar_value(default, other.fields) if other.fields else default


def _kind(spec: OurSpec) -> str:
    if spec.kind == "array":
        return "[]struct" if isinstance(spec.element, type) else f"[]{spec.element}"
    return spec.kind


def _their_kind(spec: FieldSpec) -> str:
    element = "struct" if spec.fields else "bytes" if spec.element == "records" else spec.element
    return f"[]{element}" if spec.is_array else element


def _lacking(has: Callable[[type[Any], int], bool]) -> dict[str, set[int]]:
    """The versions that an oracle lacks, by API; requests and responses must agree."""
    found: dict[str, set[int]] = {}
    for cls in KAFKA_CLASSES:
        missing = {version for version in versions_of(cls) if not has(cls, version)}
        assert found.setdefault(_api_name(cls), missing) == missing
    return {name: missing for name, missing in found.items() if missing}


def _api_name(cls: type[Any]) -> str:
    name: str = cls.__name__
    return name.removesuffix("Request").removesuffix("Response")


@pytest.mark.real_kafka
def test_what_the_oldest_definitions_lack(oldest: JarCodec) -> None:
    schemas = oldest.schemas

    def defines(cls: type[Any], version: int) -> bool:
        spec = schemas.get(cls.__name__)
        return spec is not None and version in spec.versions

    assert _lacking(defines) == OLDEST_LACKS


@EACH_KAFKA_CLASS
def test_bytes_equal_those_of_kio(cls: type[Any]) -> None:
    @SETTINGS
    @given(messages(cls, drafts=False))
    def check(message: Any) -> None:
        for version in versions_of(cls):
            theirs = kio_class(cls, version)
            if theirs is None:
                continue
            kept, entity = to_kio(fitted(message, version), theirs)
            ours = encode(kept, version)
            raw = kio_write(entity)
            assert ours == raw, f"v{version}"
            assert decode(cls, version, raw) == kept
            assert kio_read(theirs, ours) == entity

    check()


def test_what_kio_lacks() -> None:
    assert _lacking(lambda cls, version: kio_class(cls, version) is not None) == KIO_LACKS


@EACH_DRAFT_CLASS
def test_drafts_survive_a_round_trip(cls: type[Any]) -> None:
    """The draft protocols have no oracle; what we write we must at least read."""

    @SETTINGS
    @given(messages(cls))
    def check(message: Any) -> None:
        for version in versions_of(cls):
            kept = fitted(message, version)
            raw = encode(kept, version)
            assert decode(cls, version, raw) == kept

    check()


@pytest.mark.real_kafka
@pytest.mark.parametrize(
    "cls",
    [ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse],
    ids=lambda cls: cls.__name__,
)
def test_kafka_skips_our_draft_fields(cls: type[Any], newest: JarCodec) -> None:
    fields = newest.schemas[cls.__name__].fields

    @SETTINGS
    @given(messages(cls))
    def check(message: Any) -> None:
        for version in versions_of(cls):
            kept = fitted(message, version)
            raw = encode(kept, version)
            assert decode(cls, version, raw) == kept
            read = newest.decode(cls.__name__, version, raw)
            assert from_jar_value(cls, read, fields) == _without_drafts(kept)

    check()


def _without_drafts(message: Any) -> Any:
    plain: dict[str, Any] = {}
    for name, spec, _ in field_specs(type(message)):
        item = getattr(message, name)
        if is_draft_field(spec):
            continue
        if isinstance(spec.element, type) and item is not None:
            item = (
                _without_drafts(item)
                if spec.kind == "struct"
                else tuple(_without_drafts(each) for each in item)
            )
        plain[name] = item
    return type(message)(**plain)
