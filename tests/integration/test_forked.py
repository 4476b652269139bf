"""A process that forks while its clients run: whatever the child does with its copies, the parent's
connections go on."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from asyncio import StreamWriter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import Consumer, LocalProtocolError, Metrics, Producer
from kip848_client.runtime.net._connection import Connection
from mock_coordinator.security import ListenerOptions, SecurityOptions
from mock_coordinator.threaded import BrokerThread
from tests.support.security.tls import Certificates

_REPORTS: Final = b"ok"


def _collected() -> None:
    """What the garbage collector does, also with what frames of the parent hold."""
    for each in gc.get_objects():
        if isinstance(each, Connection | StreamWriter):
            each.__del__()


def _closed() -> None:
    for each in gc.get_objects():
        if isinstance(each, Connection):
            each.close()


ENDS: Final[dict[str, Callable[[], None]]] = {"collected": _collected, "closed": _closed}


def in_child(work: Callable[[], None]) -> bytes:
    """Do it in a forked child. What it reports: ``ok`` or its error."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        signal.alarm(10)  # the thread of the broker may have had a lock
        try:
            work()
            os.write(there, _REPORTS)
        except BaseException as err:  # noqa: BLE001 - told to the parent
            os.write(there, repr(err).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as told:
        found = told.read()
    os.waitpid(child, 0)
    return found


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("is_measured", [False, True])
@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_the_parents_connections_go_on(
    certificates: Certificates, protocol: str, is_measured: bool, end: str
) -> None:
    chain, key = certificates.server
    options: dict[str, Any] = {} if protocol == "PLAINTEXT" else {"certificate": chain, "key": key}
    listener = ListenerOptions(name="L", protocol=protocol, **options)
    security = SecurityOptions(listeners=(listener,))
    with BrokerThread({"t": 1}, security=security) as thread:
        settings: dict[str, Any] = {
            "bootstrap_servers": thread.call(lambda broker: broker.bootstrap_of("L")),
            "security_protocol": protocol,
            "request_timeout_ms": 3_000,
            "metrics": Metrics() if is_measured else None,
        }
        if protocol == "SSL":
            settings["ssl_cafile"] = certificates.ca

        async def run() -> None:
            async with (
                Producer(**settings) as producer,
                Consumer("t", group_id="g", auto_offset_reset="earliest", **settings) as consumer,
            ):
                await producer.send_and_wait("t", b"before")
                assert (await consumer.getone()).value == b"before"
                open_before = connections()
                assert in_child(ENDS[end]) == _REPORTS
                async with asyncio.timeout(2):
                    await producer.send_and_wait("t", b"after")
                    assert (await consumer.getone()).value == b"after"
                assert connections() == open_before, "a connection was lost and opened again"

        asyncio.run(run())


def connections() -> set[int]:
    return {
        id(each) for each in gc.get_objects() if isinstance(each, Connection) and each.connected()
    }


def test_the_child_makes_clients_of_its_own() -> None:
    with BrokerThread({"t": 1}) as broker:
        bootstrap = broker.bootstrap  # the broker's thread does not come along into the child

        async def send(value: bytes) -> None:
            async with Producer(bootstrap_servers=bootstrap) as producer:
                await producer.send_and_wait("t", value)

        async def run() -> None:
            async with Producer(bootstrap_servers=broker.bootstrap) as producer:
                await producer.send_and_wait("t", b"parent")

                def work() -> None:
                    with pytest.raises(LocalProtocolError, match="create another one in this proc"):
                        asyncio.run(producer.stop())
                    asyncio.run(send(b"child"))

                assert in_child(work) == _REPORTS
                await producer.send_and_wait("t", b"parent")

        asyncio.run(run())
        assert [each.value for each in broker.records("t", 0)] == [b"parent", b"child", b"parent"]


def test_the_child_runs_the_parents_loop() -> None:
    loop = asyncio.new_event_loop()
    with BrokerThread({"t": 1}) as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap)
        loop.run_until_complete(producer.start())

        def work() -> None:
            with pytest.raises(LocalProtocolError, match=r"os\.fork\(\)"):
                loop.run_until_complete(producer.send("t", b"lost"))

        assert in_child(work) == _REPORTS
        loop.run_until_complete(producer.send_and_wait("t", b"kept"))
        loop.run_until_complete(producer.stop())
        loop.close()
        assert [each.value for each in broker.records("t", 0)] == [b"kept"]


@pytest.mark.parametrize("name", ["send", "send_and_wait"])
def test_a_coroutine_that_is_made_between_two_loops(name: str) -> None:
    """``asyncio.run(producer.send(...))`` makes it where no loop runs yet."""
    loop = asyncio.new_event_loop()
    with BrokerThread({"t": 1}) as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap)
        loop.run_until_complete(producer.start())
        loop.run_until_complete(producer.send_and_wait("t", b"kept"))
        with pytest.raises(LocalProtocolError, match="in another loop of this thread"):
            asyncio.run(getattr(producer, name)("t", b"lost"))
        loop.run_until_complete(producer.stop())
        loop.close()
        assert [each.value for each in broker.records("t", 0)] == [b"kept"]


def test_a_record_in_the_buffer_stays_with_its_loop() -> None:
    loop = asyncio.new_event_loop()
    with BrokerThread({"t": 1}) as broker:

        async def begin() -> Consumer[Any, Any]:
            async with Producer(bootstrap_servers=broker.bootstrap) as producer:
                for number in range(5):
                    await producer.send_and_wait("t", b"%d" % number)
            settings: dict[str, Any] = {"auto_offset_reset": "earliest", "group_id": "g"}
            consumer = Consumer("t", bootstrap_servers=broker.bootstrap, **settings)
            await consumer.start()
            assert (await anext(consumer)).value == b"0"
            return consumer

        consumer = loop.run_until_complete(begin())

        async def take() -> Any:
            return await anext(consumer)

        def work() -> None:
            with pytest.raises(LocalProtocolError, match=r"os\.fork\(\)"):
                asyncio.run(take())

        with pytest.raises(LocalProtocolError, match="in another loop of this thread"):
            asyncio.run(take())
        assert in_child(work) == _REPORTS
        assert loop.run_until_complete(take()).value == b"1"
        loop.run_until_complete(consumer.stop())
        loop.close()
