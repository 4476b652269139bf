"""The fixtures that come with the package, used as a user's test suite would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PASSING = """
import anyio
import pytest
from mock_coordinator import Match, Fault
from mock_coordinator.core.faults import Refuse
from kip848_client import Consumer


@pytest.mark.mock_broker({"orders": 2}, profile="4.2")
def test_blocking(mock_broker):
    mock_broker.produce("orders", b"one", b"two", partition=1)
    mock_broker.wait_for(lambda broker: len(broker.records("orders")) == 2)
    assert [each.value for each in mock_broker.records("orders", 1)] == [b"one", b"two"]
    assert mock_broker.snapshot("nobody") is None
    mock_broker.create_topic("more", 4)
    mock_broker.restart()
    assert len(mock_broker.records("orders")) == 2


@pytest.mark.asyncio
@pytest.mark.mock_broker(
    topics={"orders": 1},
    faults='[{"match": {"api": "ConsumerGroupHeartbeat"}, "error": "NOT_COORDINATOR"}]',
)
async def test_async(async_mock_broker):
    broker = async_mock_broker
    broker.produce("orders", b"one")
    async with Consumer(
        "orders", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        assert (await consumer.getone()).value == b"one"
    assert len(broker.faults.hits) == 1


def test_without_a_marker(mock_broker):
    assert ":" in mock_broker.bootstrap


@pytest.mark.anyio
@pytest.mark.mock_broker({"orders": 1}, faults=[{"match": {"api": "Fetch"}, "drop": "request"}])
async def test_with_the_plugin_of_anyio(async_mock_broker):
    broker = async_mock_broker
    async with await anyio.connect_tcp(broker.host, broker.port):
        await broker.wait_for(lambda: broker.driver.connections > 0)
    assert len(broker.faults.waiting) == 1


@pytest.mark.mock_cluster({"orders": 2}, brokers=2, faults=[Fault(Refuse(16), Match(api="Fetch"))])
def test_several_brokers(mock_cluster):
    cluster = mock_cluster
    assert len(cluster.nodes) == len(cluster.bootstrap.split(",")) == 2
    for node_id in (1, 2):
        cluster.move_leader("orders", 0, node_id)
        cluster.move_coordinator("g", node_id)
        cluster.move_transaction_coordinator("tx", node_id)
        assert cluster.leader_of("orders") == cluster.coordinator_of("g") == node_id
        assert cluster.transaction_coordinator_of("tx") == node_id
    cluster.stop_broker(2)
    assert cluster.leader_of("orders") == 1
    assert [node.up for node in cluster.nodes] == [True, False]
    cluster.start_broker(2)
    cluster.crash_broker(1, noticed_after_ms=0)
    assert cluster.leader_of("orders") == 2
    assert cluster.call(lambda each: len(each.faults.waiting)) == 1


@pytest.mark.asyncio
@pytest.mark.mock_cluster({"orders": 1}, brokers=3)
async def test_several_brokers_async(async_mock_cluster):
    async_mock_cluster.move_leader("orders", 0, 3)
    assert async_mock_cluster.leader_of("orders") == 3


def test_three_brokers_without_a_marker(mock_cluster):
    assert len(mock_cluster.nodes) == 3
"""

FAILING = """
import pytest


def test_violation(mock_broker):
    mock_broker.call(lambda broker: broker.driver.ownership.violations.append("two have t-0"))


@pytest.mark.mock_broker(check_ownership=False)
def test_forgiven(mock_broker):
    mock_broker.call(lambda broker: broker.driver.ownership.violations.append("two have t-0"))


@pytest.mark.mock_broker({"orders": 1})
def test_wrong(mock_broker):
    import confluent_kafka
    confluent_kafka.Producer({"bootstrap.servers": mock_broker.bootstrap}).list_topics(timeout=5)
    assert False


@pytest.mark.mock_broker(profile="1.0")
def test_no_such_profile(mock_broker):
    pass


@pytest.mark.mock_broker({"orders": 1}, "4.2")
def test_too_much(mock_broker):
    pass


@pytest.mark.asyncio(loop_scope="module")
async def test_in_another_loop(async_mock_broker):
    pass


@pytest.mark.mock_broker(faults=["all"])
def test_no_fault(mock_broker):
    pass


@pytest.mark.mock_broker(brokers=3)
def test_several_in_one(mock_broker):
    pass


@pytest.mark.mock_cluster({"orders": 1})
def test_wrong_among_several(mock_cluster):
    import confluent_kafka
    confluent_kafka.Producer(
        {"bootstrap.servers": mock_cluster.bootstrap, "client.id": "of several"}
    ).list_topics(timeout=5)
    assert False
"""


TWO_PLUGINS = """
import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.mark.anyio
async def test_for_anyio(async_mock_broker):
    pass


@pytest.mark.anyio
async def test_more_for_anyio(async_mock_cluster):
    pass


async def test_for_pytest_asyncio(async_mock_broker):
    await async_mock_broker.wait_for(lambda: True)
"""


_KNOWN = "ignore::pytest.PytestAssertRewriteWarning"
"""Plugins that are named import one another."""


def run(folder: Path, text: str, settings: str = "") -> str:
    (folder / "test_it.py").write_text(text, encoding="utf-8")
    (folder / "pytest.ini").write_text(f"[pytest]\n{settings}\n", encoding="utf-8")
    plugins = ("mock_coordinator.pytest_plugin", "asyncio", "anyio")
    named = [word for plugin in plugins for word in ("-p", plugin)]
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", *named, "-W", _KNOWN],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # starts sooner
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    return finished.stdout + finished.stderr


def test_brokers_for_blocking_and_async_tests(tmp_path: Path) -> None:
    output = run(tmp_path, PASSING)
    assert "= 8 passed in" in output, output


def test_failures_say_what_was_asked(tmp_path: Path) -> None:
    output = run(tmp_path, FAILING)
    assert "2 passed" in output, output
    assert "2 failed" in output
    assert "6 errors" in output
    assert "OwnershipViolation: two have t-0" in output
    assert "requests of the mock broker" in output
    assert "rdkafka Metadata v" in output
    assert "unknown profile '1.0'" in output
    assert "set asyncio_default_fixture_loop_scope = module" in output
    assert "only topics may be a positional argument" in output
    assert "use ClusterThread for more than one broker" in output
    assert "of several Metadata v" in output
    assert "expected a Fault, not 'all'" in output


@pytest.mark.everything("it starts pytest twice")
def test_a_test_that_two_plugins_run_is_told_so(tmp_path: Path) -> None:
    """Marked for anyio, and pytest-asyncio takes all there are: the broker's loop stands still."""
    output = run(tmp_path, TWO_PLUGINS, "asyncio_mode = auto")
    assert "1 passed, " in output, output
    assert "4 errors" in output, output
    assert "set asyncio_mode = strict, or remove the mark" in output
    output = run(tmp_path, TWO_PLUGINS.partition("async def test_for_pytest")[0])
    assert "4 passed" in output, output


def test_the_plugin_is_found_without_being_asked_for() -> None:
    """By its entry point, in an installed package."""
    from importlib.metadata import entry_points

    found = {each.name for each in entry_points(group="pytest11")}
    if "mock_coordinator.pytest_plugin" not in found:
        pytest.fail("reinstall the package: pip install -e .")


def test_the_plugin_brings_no_broker_before_a_test_wants_one() -> None:
    """pytest imports it at every start, whatever it is going to run."""
    script = "import sys, mock_coordinator.pytest_plugin; print('\\n'.join(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    ).stdout.splitlines()
    ours = {name for name in loaded if name.startswith(("mock_coordinator", "kip848_client"))}
    assert ours == {"mock_coordinator", "mock_coordinator.pytest_plugin"}
