"""What a worker says while its coordinator keeps it waiting; in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from kip848_client.config import WorkerConfig
from kip848_client.connect._assignor_metadata import offered_versions
from kip848_client.connect._classic_requests import ClassicRequests
from kip848_client.connect._observers import WorkerObservers
from kip848_client.connect._protocol_selection import classic_settings, connect_settings
from kip848_client.connect._requests import WorkerRequests
from kip848_client.connect._worker_driver import WorkerDriver
from kip848_client.connect.core import Configuration
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._events import JoinRequested
from kip848_client.core.connect import IncrementalCooperativeAssignor
from kip848_client.core.types import GroupId, MemberId
from kip848_client.core.wire.messages.classic_group import JoinGroupResponse
from kip848_client.core.wire.messages.connect_group import ConnectGroupHeartbeatResponse
from kip848_client.errors import Kip848Error, RequestTimedOut, refusal
from kip848_client.runtime.client._event_streams import EventHub
from kip848_client.runtime.clock import LoopClock
from tests.support.virtual_loop import run_virtually
from tests.unit.consumer.fakes import FakeTransport

LOADING, AWAY = 14, 15
FIELDS = {"group_id": "g", "client_id": "c"}


class Listener:
    def on_assigned(self, items: Any) -> None: ...
    def on_revoked(self, items: Any) -> None: ...
    def on_lost(self, items: Any) -> None: ...


class Coordinator(FakeTransport):
    """``lookup``: what looking it up raises; ``answer``: what it answers."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__(lambda _where, request: answer(request))
        self.lookup: Kip848Error | None = None
        self.is_held = False

    async def find_coordinator(self) -> None:
        if self.lookup is not None:
            raise self.lookup

    async def coordinator_that_waits(self, request: Any, **_: Any) -> Any:
        if self.is_held:
            await asyncio.Event().wait()
        return self.answer("coordinator", request)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = (each.getMessage() for each in caplog.records)
    return [each for each in told if "waiting for" in each or "the wait for" in each]


async def drive(
    protocol: str, transport: Coordinator, seconds: float, *, after_s: float = 0
) -> WorkerDriver:
    """A worker that has run for ``after_s``, and has been joining for ``seconds``."""
    assignor = IncrementalCooperativeAssignor()
    config = WorkerConfig.of({"group_id": "g"})
    clock = LoopClock(asyncio.get_running_loop())
    core: WorkerCore | ClassicWorkerCore
    requests: WorkerRequests | ClassicRequests
    if protocol == "classic":
        core = ClassicWorkerCore(classic_settings(config), lambda ms: ms)
        requests = ClassicRequests(GroupId("g"), transport, FIELDS)
    else:
        settings = connect_settings(config, (offered_versions(assignor),))
        core = WorkerCore(settings, MemberId("me"), lambda ms: ms)
        requests = WorkerRequests(GroupId("g"), MemberId("me"), transport, FIELDS)
    observers = WorkerObservers(config, clock, EventHub())
    observers.fields.update(FIELDS)
    driver = WorkerDriver(
        core, requests, Listener(), {}, clock, observers, stop_ms=1_000, start_ms=60_000
    )
    running = asyncio.create_task(driver.run())
    await driver.begun()
    await asyncio.sleep(after_s)
    driver.post(JoinRequested(Configuration(1, {})))
    await asyncio.sleep(seconds)
    running.cancel()
    return driver


@pytest.mark.parametrize("protocol", ["classic", "connect"])
def test_a_coordinator_that_is_not_found(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    transport = Coordinator(lambda _: None)
    transport.lookup = refusal(AWAY, None, "FindCoordinator")
    run_virtually(lambda: drive(protocol, transport, 20))
    (line,) = said(caplog)
    assert line.startswith("group g: waiting for the group coordinator for ")
    assert "FindCoordinator" in line
    assert "COORDINATOR_NOT_AVAILABLE" in line


@pytest.mark.parametrize("protocol", ["classic", "connect"])
def test_a_coordinator_that_loads(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_request: Any) -> Any:
        if protocol == "classic":
            return JoinGroupResponse(error_code=LOADING)
        return ConnectGroupHeartbeatResponse(error_code=LOADING)

    run_virtually(lambda: drive(protocol, Coordinator(refuse), 20))
    (line,) = said(caplog)
    assert "waiting for the group coordinator" in line
    assert "COORDINATOR_LOAD_IN_PROGRESS" in line


@pytest.mark.parametrize("protocol", ["classic", "connect"])
def test_a_short_wait_is_not_worth_a_line(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    transport = Coordinator(lambda _: None)
    transport.lookup = RequestTimedOut("slow")
    run_virtually(lambda: drive(protocol, transport, 0.7, after_s=0.4))
    assert not said(caplog)


@pytest.mark.parametrize("protocol", ["classic", "connect"])
def test_a_wait_is_told_within_two_seconds(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    transport = Coordinator(lambda _: None)
    transport.lookup = RequestTimedOut("slow")
    run_virtually(lambda: drive(protocol, transport, 1.7, after_s=0.4))
    assert said(caplog) == ["group g: waiting for the group coordinator for 2 s: slow"]


def test_a_round_of_a_classic_group_is_not_a_wait_for_its_coordinator(
    caplog: pytest.LogCaptureFixture,
) -> None:
    transport = Coordinator(lambda _: None)
    transport.is_held = True
    with caplog.at_level(logging.INFO):
        run_virtually(lambda: drive("classic", transport, 20))
    assert not said(caplog)
