"""The table of what real brokers offer (``tools.docs.coverage``), against real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kip848_client.core.wire import DRAFT_API_KEYS
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from mock_coordinator import MockBroker
from tests.support.jar_schemas import load_schemas
from tests.support.real_kafka import RealKafka
from tools.docs.coverage.apis import KAFKA_APIS

LEFT_OUT = {"share.version", "streams.version"}
"""Features that this broker does not know."""


@pytest.mark.real_kafka
def test_the_versions_are_those_of_a_real_broker(real_kafka: RealKafka) -> None:
    ask = ApiVersionsRequest(client_software_name="kip848-tests", client_software_version="1")
    with real_kafka.connect() as connection:
        answer = connection.request(ask, 4)
    offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    table = {
        api.key: api.offered[real_kafka.profile]
        for api in KAFKA_APIS.values()
        if real_kafka.profile in api.offered
    }
    assert table == offered


@pytest.mark.real_kafka
def test_what_is_offered_is_offered_as_by_a_real_broker(real_kafka: RealKafka) -> None:
    ask = ApiVersionsRequest(client_software_name="kip848-tests", client_software_version="1")
    with real_kafka.connect() as connection:
        real = connection.request(ask, 4)
    ours = MockBroker(profile=real_kafka.profile, listen=False).connect().ask(ask, 4)
    for field in ("supported_features", "finalized_features"):
        known = [each for each in getattr(real, field) if each.name not in LEFT_OUT]
        theirs = sorted(known, key=lambda each: str(each.name))
        assert sorted(getattr(ours, field), key=lambda each: str(each.name)) == theirs
    keys = [each for each in ours.api_keys if each.api_key not in DRAFT_API_KEYS]
    served = {each.api_key for each in keys}
    assert keys == [each for each in real.api_keys if each.api_key in served]


@pytest.mark.real_kafka
def test_the_names_are_those_of_the_newest_release(
    kafka_clients_jar: Callable[[str], Path],
) -> None:
    schemas = load_schemas(kafka_clients_jar("4.4.0")).values()
    requests = {each.api_key: each.name for each in schemas if each.kind == "request"}
    assert {api.key: f"{api.name}Request" for api in KAFKA_APIS.values()} == requests
