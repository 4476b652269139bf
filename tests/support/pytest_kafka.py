"""pytest options and fixtures for tests that need Apache Kafka.

``--kafka-versions 4.0.2,4.4.0`` says which releases: without it the newest, with ``--everything``
every one that has a profile; tests marked ``two_releases``, and those of the fixture ``cluster``,
take the oldest and the newest then. A test that takes the fixture ``real_kafka`` runs once on
each, and must carry ``@pytest.mark.real_kafka``. A broker is started when first needed, one per
worker at a time, and stays up until a test asks for another release; tests share it, so each uses
its own group and topic names (``unique`` gives them).

Where Java, Maven or the jars are missing these tests skip and say what is missing; with
``KIP848_REQUIRE_KAFKA`` set in the environment, as continuous integration has it, they fail.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Final, Literal

import pytest

from tests.support.kafka_jars import (
    ALL_VERSIONS,
    KafkaUnavailableError,
    kafka_jar,
    kafka_libs,
    tools_libs,
)
from tests.support.pytest_everything import is_everything
from tests.support.real_kafka import FAST_CONFIGS, RealKafka

__all__ = [
    "chosen_versions",
    "kafka_clients_jar",
    "kafka_tools_jars",
    "kafka_version",
    "oldest_and_newest",
    "pytest_addoption",
    "pytest_collection_finish",
    "pytest_generate_tests",
    "pytest_runtest_makereport",
    "real_kafka",
    "real_kafka_pool",
    "skip_without_kafka",
    "unique",
]

_OPTION: Final = "--kafka-versions"

_REQUIRED: Final = "KIP848_REQUIRE_KAFKA"

RealKafkaPool = Callable[[str], RealKafka]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        _OPTION,
        help=f"Kafka releases of the real_kafka tests, from {', '.join(ALL_VERSIONS)}; or all",
    )


def chosen_versions(config: pytest.Config) -> tuple[str, ...]:
    """The releases of this run. Raises ``pytest.UsageError`` for one that is not known."""
    text: str | None = config.getoption(_OPTION)
    if text is None:
        return ALL_VERSIONS if is_everything(config) else ALL_VERSIONS[-1:]
    if text == "all":
        return ALL_VERSIONS
    chosen = tuple(each.strip() for each in text.split(",") if each.strip())
    unknown = [each for each in chosen if each not in ALL_VERSIONS]
    if unknown:
        known = ", ".join(ALL_VERSIONS)
        raise pytest.UsageError(f"{_OPTION}: {', '.join(unknown)} is not one of {known}")
    return chosen


def oldest_and_newest(config: pytest.Config) -> tuple[str, ...]:
    """Two releases of this run, or those of ``--kafka-versions``: where the client is tested, or a
    Java tool takes long to start. ``python -m tests.long`` plays the releases between."""
    versions = chosen_versions(config)
    return (
        versions if config.getoption(_OPTION) else tuple(dict.fromkeys((versions[0], versions[-1])))
    )


class skip_without_kafka:  # noqa: N801 (reads as the verb it is: ``with skip_without_kafka():``)
    """Turn a missing Kafka into a skip that says what is missing, or into a failure where the
    environment requires Kafka: a run that must prove something cannot skip the proof."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> Literal[False]:
        if isinstance(error, KafkaUnavailableError):
            if os.environ.get(_REQUIRED):
                pytest.fail(f"{_REQUIRED} is set, and Kafka cannot run: {error}")
            pytest.skip(str(error))
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in ("real_kafka", "kafka_version"):
        if name in metafunc.fixturenames:
            few = metafunc.definition.get_closest_marker("two_releases")
            versions = oldest_and_newest if few else chosen_versions
            metafunc.parametrize(name, versions(metafunc.config), indirect=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Resolve the jars before the first test, so that no test's time limit pays for a download."""
    wanted = any(item.get_closest_marker("real_kafka") for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    # Whatever is missing, the fixture meets it again and skips with the reason.
    with contextlib.suppress(KafkaUnavailableError):
        for version in chosen_versions(session.config):
            kafka_libs(version)
        tools_libs()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the broker's log beside a failure."""
    report = yield
    kafka = getattr(item, "funcargs", {}).get("real_kafka")
    if report.failed and isinstance(kafka, RealKafka):
        report.sections.append((f"Kafka {kafka.version} log", kafka.log_tail()))
    return report


@pytest.fixture(scope="session")
def real_kafka_pool() -> Iterator[RealKafkaPool]:
    """A function from release to running broker; the one of another release is stopped."""
    running: dict[str, RealKafka] = {}
    with contextlib.ExitStack() as stack:

        def broker(version: str) -> RealKafka:
            if version not in running:
                stack.close()
                running.clear()
                started = RealKafka.start(version, FAST_CONFIGS)
                running[version] = stack.enter_context(started)
            return running[version]

        yield broker


@pytest.fixture
def real_kafka(request: pytest.FixtureRequest, real_kafka_pool: RealKafkaPool) -> RealKafka:
    """A running broker of the release that this test run asks for; skips where Kafka cannot run."""
    assert request.node.get_closest_marker("real_kafka"), "mark the test with real_kafka"
    version: str = request.param
    with skip_without_kafka():
        return real_kafka_pool(version)


@pytest.fixture
def kafka_version(request: pytest.FixtureRequest) -> str:
    """A release of this test run, its jars at hand, for a test that starts its own broker."""
    version: str = request.param
    with skip_without_kafka():
        kafka_libs(version)
    return version


@pytest.fixture(scope="session")
def kafka_tools_jars() -> Path:
    """The folder of Kafka's command line tools (``tests.support.kafka_tools``); skips without."""
    with skip_without_kafka():
        return tools_libs()


@pytest.fixture(scope="session")
def kafka_clients_jar() -> Callable[[str], Path]:
    """A function from release to its ``kafka-clients`` jar; skips where jars cannot be had."""

    def jar(version: str) -> Path:
        with skip_without_kafka():
            return kafka_jar(version)

    return jar


@pytest.fixture
def unique() -> Callable[[str], str]:
    """Names that no other test uses: ``unique("orders")`` -> "orders-3f9c..."."""
    suffix = uuid.uuid4().hex[:10]
    return lambda name: f"{name}-{suffix}"
