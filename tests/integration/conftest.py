"""The fixture ``cluster``: one test, every broker.

A test that takes it runs against the bundled broker in this process and against each Kafka release
of ``--kafka-versions``; the latter carry the mark ``real_kafka`` and skip where Kafka cannot run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from tests.integration.cluster import Cluster
from tests.support.kafka_jars import ALL_VERSIONS, KafkaUnavailableError
from tests.support.real_kafka import RealKafka

__all__ = ["cluster", "pytest_generate_tests"]

MOCK_PROFILES = ("4.0", "4.4")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" not in metafunc.fixturenames:
        return
    real = [
        pytest.param(f"kafka-{version}", marks=pytest.mark.real_kafka)
        for version in _chosen(metafunc.config)
    ]
    mock = [f"mock-{profile}" for profile in MOCK_PROFILES]
    metafunc.parametrize("cluster", [*mock, *real], indirect=True)


def _chosen(config: pytest.Config) -> tuple[str, ...]:
    text = str(config.getoption("--kafka-versions"))
    return ALL_VERSIONS if text == "all" else tuple(each.strip() for each in text.split(","))


@pytest_asyncio.fixture
async def cluster(
    request: pytest.FixtureRequest, real_kafka_pool: Callable[[str], RealKafka]
) -> AsyncIterator[Cluster]:
    """A broker to test against; see the module."""
    kind, _, version = str(request.param).partition("-")
    if kind == "mock":
        pytest.skip("the bundled broker is not there yet")
    try:
        kafka = real_kafka_pool(version)
    except KafkaUnavailableError as err:
        pytest.skip(str(err))
    found = Cluster(version, kafka.profile, kafka.host, kafka.port)
    yield found
    await found.close()
