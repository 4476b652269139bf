"""Which harm is done, and who starts a process again that reached nobody."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, cast

import pytest

from kip848_client import BootstrapFailed, RequestTimedOut, TransportError
from mock_coordinator import MockBroker
from tests.torture.clients import Reached, UnreachableError
from tests.torture.harm import do_harm
from tests.torture.names import IN, PARTITIONS
from tests.torture.processes import Processes
from tests.torture.roles import Role
from tests.torture.scene import Kind, Lane, Scene

NAMES: Final = ("kill", "freeze", "restart")
NO_REST: Final = (0.0, 0.0)
NO_SCENE: Final = cast("Scene", None)


def noting(done: list[str], name: str) -> Callable[[Scene, random.Random], Awaitable[None]]:
    async def do(_scene: Scene, _dice: random.Random) -> None:
        done.append(name)

    return do


@pytest.mark.asyncio
@pytest.mark.parametrize(("until", "times"), [(0, 1), (3, 1), (6, 2)])
async def test_each_kind_comes_once_before_any_comes_again_or_the_end(
    until: int, times: int
) -> None:
    done: list[str] = []
    kinds = [Kind(Lane.PROCESSES, noting(done, name)) for name in NAMES]
    await do_harm(NO_SCENE, kinds, random.Random(1), NO_REST, lambda: len(done) >= until)
    assert len(done) == times * len(NAMES)
    rounds = [done[at : at + len(NAMES)] for at in range(0, len(done), len(NAMES))]
    assert all(sorted(each) == sorted(NAMES) for each in rounds)


@pytest.mark.asyncio
@pytest.mark.parametrize("role", [Role.READER, Role.PROCESSOR])
async def test_one_that_reached_no_broker_is_started_again(
    role: Role, tmp_path: Path, unused_tcp_port: int
) -> None:
    bootstrap = f"127.0.0.1:{unused_tcp_port}"
    running = Processes.running({"r": role}, bootstrap, 1, tmp_path, is_network_cut=True)
    async with running as processes:
        first = processes.living["r"]
        supervising = asyncio.create_task(processes.supervise())
        await first.ended()
        assert first.has_given_up
        while processes.living["r"] is first:  # noqa: ASYNC110 - a task looks for it
            await asyncio.sleep(0)
        async with MockBroker(port=unused_tcp_port, topics={IN: PARTITIONS}):
            begun = False
            while not begun:
                await processes.living["r"].has_begun()
                begun = processes.living["r"].is_running
                await asyncio.sleep(0)
            supervising.cancel()
            assert await processes.living["r"].end() == 0
        assert processes.counts()["unreachable"] >= 1
        assert processes.troubles() == []


@pytest.mark.asyncio
async def test_nothing_is_an_excuse_where_the_network_is_whole(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    bootstrap = f"127.0.0.1:{unused_tcp_port}"
    async with Processes.running({"r": Role.READER}, bootstrap, 1, tmp_path) as processes:
        process = processes.living["r"]
        await process.has_begun()
        assert process.has_ended_by_itself
        (trouble,) = processes.troubles()
        assert trouble.startswith("r ended by itself, with 4:")


class Client:
    def __init__(self, at_start: TransportError | None) -> None:
        self.at_start = at_start

    async def __aenter__(self) -> Client:
        if self.at_start is not None:
            raise self.at_start
        return self

    async def __aexit__(self, *_error: object) -> None:
        return None


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [BootstrapFailed, TransportError])
async def test_brokers_that_go_away_during_a_start_were_not_reached(
    kind: type[TransportError],
) -> None:
    with pytest.raises(UnreachableError, match="gone"):
        async with Reached(Client(kind("gone"))):
            pass


@pytest.mark.asyncio
async def test_once_it_has_started_a_client_has_to_get_over_it() -> None:
    with pytest.raises(RequestTimedOut):
        async with Reached(Client(None)):
            raise RequestTimedOut("later")
