"""pytest fixtures of the bundled broker, registered with the package.

::

    def test_orders(mock_broker):                     # blocking clients; runs in a thread
        producer = confluent_kafka.Producer({"bootstrap.servers": mock_broker.bootstrap})

    @pytest.mark.mock_broker(topics={"orders": 3}, profile="4.2")
    async def test_group(async_mock_broker):          # async clients, in the test's own loop
        consumer = kip848_client.Consumer(bootstrap_servers=async_mock_broker.bootstrap, ...)

    @pytest.mark.mock_cluster({"orders": 3}, brokers=3)
    def test_moves(mock_cluster):                     # several brokers; also async_mock_cluster
        mock_cluster.move_leader("orders", 0, 2)

The markers take the arguments of ``MockBroker`` and ``MockCluster``, and ``faults``: a list of
faults, or JSON. A test fails if two members of a group may have used the same partition, unless its
marker has ``check_ownership=False``. The report of a failed test shows the newest requests.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from mock_coordinator import LoggedRequest, MockBroker, MockCluster
    from mock_coordinator.threaded import BrokerThread, ClusterThread

__all__ = [
    "async_mock_broker",
    "async_mock_cluster",
    "mock_broker",
    "mock_cluster",
    "pytest_configure",
    "pytest_runtest_makereport",
]

_BROKER: Final = "mock_broker"
_CLUSTER: Final = "mock_cluster"
_FIXTURES: Final = (_BROKER, f"async_{_BROKER}", _CLUSTER, f"async_{_CLUSTER}")
_SHOWN: Final = 50


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line(
        "markers", f"{_BROKER}(topics=None, **options): the broker of this test, as MockBroker"
    )
    config.addinivalue_line(
        "markers", f"{_CLUSTER}(topics=None, **options): the brokers of this test, as MockCluster"
    )


def _options(
    request: pytest.FixtureRequest, marker_name: str
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The arguments for ``MockBroker`` or ``MockCluster``, and the faults."""
    from mock_coordinator.core.faults import fault_from_json, faults_from_json

    marker = request.node.get_closest_marker(marker_name)
    options: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    if marker is not None and marker.args:
        if len(marker.args) > 1:
            pytest.fail(f"only topics may be a positional argument: {marker}", pytrace=False)
        (options["topics"],) = marker.args
    faults = options.pop("faults", ())
    if isinstance(faults, str):
        faults = faults_from_json(faults)
    return options, tuple(
        fault_from_json(each) if isinstance(each, dict) else each for each in faults
    )


@pytest.fixture
def mock_broker(request: pytest.FixtureRequest) -> Iterator[BrokerThread]:
    """A broker in a thread of its own, for tests and clients that block.

    Arguments come from the marker ``mock_broker``. Gives a ``BrokerThread``. On teardown it raises
    ``OwnershipViolation``.
    """
    from mock_coordinator.threaded import BrokerThread

    options, faults = _options(request, _BROKER)
    with BrokerThread(**options) as broker:
        broker.inject(*faults)
        yield broker


@pytest.fixture
def mock_cluster(request: pytest.FixtureRequest) -> Iterator[ClusterThread]:
    """Several brokers in a thread of their own, for tests and clients that block.

    Arguments come from the marker ``mock_cluster``. Gives a ``ClusterThread``. On teardown it
    raises ``OwnershipViolation``.
    """
    from mock_coordinator.threaded import ClusterThread

    options, faults = _options(request, _CLUSTER)
    with ClusterThread(**options) as cluster:
        cluster.inject(*faults)
        yield cluster


def _require_same_loop(request: pytest.FixtureRequest) -> None:
    """Fail if pytest-asyncio runs the test and its fixtures in different event loops: the broker's
    loop would not run during the test, and its clients would wait forever."""
    marker = request.node.get_closest_marker("asyncio")
    if marker is None:
        return
    if "anyio_backend" in request.fixturenames:
        # pytest-asyncio takes every async test in its auto mode; anyio still runs the fixtures
        pytest.fail(
            "the test is marked for anyio, but pytest-asyncio runs it in another event loop than "
            "the broker's: set asyncio_mode = strict, or remove the mark",
            pytrace=False,
        )
    try:
        of_fixtures = request.config.getini("asyncio_default_fixture_loop_scope") or "function"
        by_default = request.config.getini("asyncio_default_test_loop_scope")
    except ValueError:  # no pytest-asyncio, or an old one
        return
    of_test = marker.kwargs.get("loop_scope") or by_default
    if of_test != of_fixtures:
        pytest.fail(
            f"the test runs in the event loop of its {of_test}, but the broker in that of its "
            f"{of_fixtures}: set asyncio_default_fixture_loop_scope = {of_test}",
            pytrace=False,
        )


def _run_by_a_plugin(function: Callable[..., AsyncGenerator[Any]]) -> Any:
    """An async fixture, run by pytest-asyncio or by anyio's plugin."""
    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture(function)  # anyio's plugin runs plain async fixtures
    return pytest_asyncio.fixture(function)


async def _async_mock_broker(request: pytest.FixtureRequest) -> AsyncGenerator[MockBroker]:
    """A broker in the event loop of the test.

    Arguments come from the marker ``mock_broker``. Gives a ``MockBroker``. On teardown it raises
    ``OwnershipViolation``.
    """
    from mock_coordinator import MockBroker

    options, faults = _options(request, _BROKER)
    _require_same_loop(request)
    async with MockBroker(**options) as broker:
        broker.faults.add(*faults)
        yield broker


async def _async_mock_cluster(request: pytest.FixtureRequest) -> AsyncGenerator[MockCluster]:
    """Several brokers in the event loop of the test.

    Arguments come from the marker ``mock_cluster``. Gives a ``MockCluster``. On teardown it raises
    ``OwnershipViolation``.
    """
    from mock_coordinator import MockCluster

    options, faults = _options(request, _CLUSTER)
    _require_same_loop(request)
    async with MockCluster(**options) as cluster:
        cluster.faults.add(*faults)
        yield cluster


async_mock_broker = _run_by_a_plugin(_async_mock_broker)
async_mock_cluster = _run_by_a_plugin(_async_mock_cluster)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the broker's newest requests to the report of a failed test."""
    report = yield
    if report.failed:
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        for name in _FIXTURES:
            broker = arguments.get(name)
            if broker is not None:
                report.sections.append(("requests of the mock broker", _conversation(broker)))
    return report


def _conversation(broker: BrokerThread | MockBroker) -> str:
    from kip848_client.core.visible import visible

    try:
        latest: list[LoggedRequest] = broker.requests()[-_SHOWN:]
    except RuntimeError:
        return "(the broker is gone)"
    return "\n".join(
        f"{each.at_ms} {visible(each.client_id or '(no client id)')} {each.api} v{each.version}"
        for each in latest
    )
