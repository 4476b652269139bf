"""pytest fixtures that come with the package: a broker for every test that wants one.

::

    def test_orders(mock_broker):                     # blocking clients; runs in a thread
        producer = confluent_kafka.Producer({"bootstrap.servers": mock_broker.bootstrap})

    @pytest.mark.mock_broker(topics={"orders": 3}, profile="4.2")
    async def test_group(async_mock_broker):          # async clients, in the test's own loop
        consumer = kip848_client.Consumer(bootstrap_servers=async_mock_broker.bootstrap, ...)

The marker's arguments are those of ``MockBroker``; ``faults`` is a list of faults, or JSON. A
test fails when two members of a group may have used the same partition, unless it says
``check_ownership=False``. When a test fails, the broker's latest requests are shown beside it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from mock_coordinator import LoggedRequest, MockBroker
    from mock_coordinator.threaded import BrokerThread

__all__ = [
    "async_mock_broker",
    "mock_broker",
    "pytest_configure",
    "pytest_runtest_makereport",
]

_MARKER: Final = "mock_broker"
_FIXTURES: Final = ("mock_broker", "async_mock_broker")
_SHOWN: Final = 50


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line(
        "markers", f"{_MARKER}(topics=None, **options): the broker of this test, as MockBroker"
    )


def _options(request: pytest.FixtureRequest) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """The arguments for ``MockBroker``, and the faults."""
    from mock_coordinator.core.faults import fault_from_json, faults_from_json

    marker = request.node.get_closest_marker(_MARKER)
    options: dict[str, Any] = dict(marker.kwargs) if marker is not None else {}
    if marker is not None and marker.args:
        if len(marker.args) > 1:
            pytest.fail(f"only topics may come without a name: {marker}", pytrace=False)
        (options["topics"],) = marker.args
    faults = options.pop("faults", ())
    if isinstance(faults, str):
        faults = faults_from_json(faults)
    return options, tuple(
        fault_from_json(each) if isinstance(each, dict) else each for each in faults
    )


@pytest.fixture
def mock_broker(request: pytest.FixtureRequest) -> Iterator[BrokerThread]:
    """A broker in a thread of its own: for tests and clients that block."""
    from mock_coordinator.threaded import BrokerThread

    options, faults = _options(request)
    with BrokerThread(**options) as broker:
        broker.inject(*faults)
        yield broker


def _require_same_loop(request: pytest.FixtureRequest) -> None:
    """Fail when pytest-asyncio runs the test in another event loop than its fixtures: a broker in a
    loop that stands still lets its clients wait in vain."""
    marker = request.node.get_closest_marker("asyncio")
    if marker is None:
        return
    try:
        of_fixtures = request.config.getini("asyncio_default_fixture_loop_scope") or "function"
        by_default = request.config.getini("asyncio_default_test_loop_scope")
    except ValueError:  # no pytest-asyncio, or an old one
        return
    of_test = marker.kwargs.get("loop_scope") or by_default
    if of_test != of_fixtures:
        pytest.fail(
            f"the test runs in the event loop of its {of_test}, the broker in that of its "
            f"{of_fixtures}: say asyncio_default_fixture_loop_scope = {of_test}",
            pytrace=False,
        )


def _async_broker() -> Any:
    """The async fixture, which pytest-asyncio or anyio's plugin has to run."""

    async def async_mock_broker(request: pytest.FixtureRequest) -> AsyncGenerator[MockBroker]:
        """A broker in the event loop of the test."""
        from mock_coordinator import MockBroker

        options, faults = _options(request)
        _require_same_loop(request)
        async with MockBroker(**options) as broker:
            broker.faults.add(*faults)
            yield broker

    try:
        import pytest_asyncio
    except ImportError:
        return pytest.fixture(async_mock_broker)  # anyio's plugin runs plain async fixtures
    return pytest_asyncio.fixture(async_mock_broker)


async_mock_broker = _async_broker()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the broker's requests beside a failure."""
    report = yield
    if report.failed:
        arguments: dict[str, Any] = getattr(item, "funcargs", {})
        for name in _FIXTURES:
            broker = arguments.get(name)
            if broker is not None:
                report.sections.append(("requests of the mock broker", _conversation(broker)))
    return report


def _conversation(broker: BrokerThread | MockBroker) -> str:
    try:
        latest: list[LoggedRequest] = broker.requests()[-_SHOWN:]
    except RuntimeError:
        return "(the broker is gone)"
    return "\n".join(
        f"{each.at_ms} {each.client_id or '(no client id)'} {each.api} v{each.version}"
        for each in latest
    )
