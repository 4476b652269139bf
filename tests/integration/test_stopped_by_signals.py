"""A processor that ends on a signal commits what is done, and leaves its group."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from kip848_client import Admin, ConfigError, LocalProtocolError
from mock_coordinator import MockBroker
from tests.integration.intercepted import intercepted
from tests.integration.processing import Job, copy_to

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]

_MORE = pytest.mark.everything("it starts a process, and one of these is for every run")


class Program:
    """``stopped_by_signals`` in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.printed: list[str] = []

    async def until(self, text: str) -> None:
        """Read what it prints until this line."""
        assert self.process.stdout is not None
        while text not in self.printed:
            line = await self.process.stdout.readline()
            assert line, f"it has ended, after {self.printed}"
            self.printed.append(line.decode().strip())

    async def end(self) -> int:
        """Read to its end; returns the exit code."""
        assert self.process.stdout is not None
        self.printed += (await self.process.stdout.read()).decode().split("\n")
        return await self.process.wait()


@asynccontextmanager
async def running(how: str, *values: bytes) -> AsyncGenerator[tuple[MockBroker, Program]]:
    async with MockBroker({"in": 1, "out": 1}) as broker:
        broker.produce("in", *values)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.integration.stopped_by_signals", broker.bootstrap, how),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            yield broker, Program(process)
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _committed(broker: MockBroker) -> int:
    async with Admin(bootstrap_servers=broker.bootstrap) as admin:
        offsets = await admin.list_group_offsets("g")
        (described,) = (await admin.describe_groups(["g"])).values()
    assert not described.members, "it has left its group"
    return sum(each.offset for each in offsets.values())


@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("stop_on", signal.SIGTERM),
        pytest.param("stop_on", signal.SIGINT, marks=_MORE),
        pytest.param("request_stop", signal.SIGTERM, marks=_MORE),
        pytest.param("raw", signal.SIGTERM, marks=_MORE),
    ],
)
async def test_a_signal(how: str, number: signal.Signals) -> None:
    async with running(how, b"1", b"slow", b"after") as (broker, program):
        await program.until("slow")
        program.process.send_signal(number)
        assert await program.end() == 0
        assert "after" not in program.printed
        assert "returned" in program.printed
        assert (f"handlers: {how == 'stop_on'}" in program.printed) or how == "request_stop"
        assert await _committed(broker) == 2
        values = [record.value for record in broker.records("out")]
        assert values == [b"1", b"slow"]


async def test_a_second_signal_does_what_it_did_before() -> None:
    async with running("stop_on", b"1", b"stuck") as (_, program):
        await program.until("stuck")
        program.process.send_signal(signal.SIGINT)
        await program.until("stopping")  # or the second one may come before the first was seen
        assert program.process.returncode is None, "the first one waits for the function"
        program.process.send_signal(signal.SIGINT)
        assert await program.end() == 3
        assert "interrupted" in program.printed


@_MORE
async def test_a_thread() -> None:
    async with running("thread", b"1", b"slow", b"after") as (broker, program):
        await program.until("slow")
        assert program.process.stdin is not None
        program.process.stdin.write(b"\n")
        assert await program.end() == 0
        assert await _committed(broker) == 2


@_MORE
async def test_the_function_itself() -> None:
    async with running("function", b"1", b"last", b"after") as (broker, program):
        assert await program.end() == 0
        assert "after" not in program.printed
        assert await _committed(broker) == 2


async def test_a_request_before_run() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        processor = job.processor(copy_to(job.target))
        processor.request_stop()
        async with processor:
            processor.request_stop()
            await processor.run()
        processor.request_stop()
        assert await job.committed() == 0


async def test_what_is_not_a_signal() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        async with job.processor(copy_to(job.target)) as processor:
            for wrong in ("SIGTERM", [4_711], 15, [signal.SIGTERM, "x"]):
                with pytest.raises(ConfigError, match="stop_on"):
                    await processor.run(stop_on=wrong)  # type: ignore[arg-type]  # on purpose
            with pytest.raises(LocalProtocolError, match="SIGKILL cannot be handled"):
                await processor.run(stop_on=[signal.SIGTERM, signal.SIGKILL])
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
