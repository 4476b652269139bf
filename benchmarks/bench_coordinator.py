"""The bundled coordinator under load, beside librdkafka's mock broker for what that can do.

``heartbeats``: the most heartbeats a second that a group of N members gets answered, in process
(the core alone, no bytes) and through TCP (the server in a process of its own, a connection for
each member, one heartbeat under way on each). ``steady``: 10,000 members heartbeat every 5 s, which
is Kafka's default; processor time and memory of the server are the operating system's figures.
``converge``: 10,000 members join and share 100,000 partitions, until everybody has what the target
says; in process, in virtual time, with Kafka's default assignment interval of one second.

librdkafka's mock (``test.mock.num.brokers``) runs inside of a librdkafka client in a process of its
own; the same generator talks to it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.timing import machine, say, table
from kip848_client.core.types import TopicId
from kip848_client.core.wire import APIS, Framer, encode, read_response, write_request
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
)
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import LOCAL_CLIENT, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["InProcessCore", "main"]

_HEARTBEAT: Final = 68
_VERSION: Final = 1
_INTERVAL_S: Final = 5.0
_CPU_BAR: Final = 0.60
_MEMORY_BAR_BYTES: Final = 500_000_000
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

_LIBRDKAFKA: Final = """
import sys, time
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1})
broker = next(iter(producer.list_topics("t", timeout=10).brokers.values()))
print(f"listening on {broker.host}:{broker.port}", flush=True)
time.sleep(3600)
"""


# --- A server in a process of its own -------------------------------------------------------------


@dataclass(frozen=True)
class Server:
    """Where it listens, and its process."""

    host: str
    port: int
    pid: int

    def cpu_s(self) -> float:
        """Processor time used so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_bytes(self) -> int:
        """Resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE


@contextlib.asynccontextmanager
async def _served(*command: str) -> AsyncGenerator[Server]:
    process = subprocess.Popen(  # noqa: ASYNC220  # starting it is not what is measured
        [sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        line = await asyncio.to_thread(process.stdout.readline)
        host, _, port = line.strip().removeprefix("listening on ").rpartition(":")
        yield Server(host, int(port), process.pid)
    finally:
        process.kill()
        process.wait()


def _ours() -> contextlib.AbstractAsyncContextManager[Server]:
    return _served(
        *("-m", "mock_coordinator", "--topic", "t:10"),
        *("--config", "max.connections=30000", "--config", "max.connections.per.ip=30000"),
    )


def _librdkafkas() -> contextlib.AbstractAsyncContextManager[Server]:
    return _served("-c", _LIBRDKAFKA)


# --- Members --------------------------------------------------------------------------------------


class _Member:
    """One member on its own connection."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: Any) -> None:
        self.member_id = f"member-{number:05d}"
        self.epoch = 0
        self._reader = reader
        self._writer = writer
        self._framer = Framer()

    async def beat(self) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat; the first one joins."""
        self._writer.write(write_request(_request(self.member_id, self.epoch), _VERSION, 1, "b"))
        while True:
            data = await self._reader.read(65_536)
            if not data:
                raise RuntimeError(f"the server hung up on {self.member_id}")
            for payload in self._framer.feed(data):
                _, response = read_response(payload, APIS[_HEARTBEAT], _VERSION)
                if response.error_code:
                    raise RuntimeError(f"{self.member_id}: error {response.error_code}")
                self.epoch = response.member_epoch
                heartbeat: ConsumerGroupHeartbeatResponse = response
                return heartbeat

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


def _request(member_id: str, epoch: int) -> ConsumerGroupHeartbeatRequest:
    if epoch:
        return ConsumerGroupHeartbeatRequest(
            group_id="bench", member_id=member_id, member_epoch=epoch
        )
    return ConsumerGroupHeartbeatRequest(
        group_id="bench",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        subscribed_topic_regex="",  # librdkafka's mock dies of names without it
        topic_partitions=(),
    )


async def _members(server: Server, count: int) -> list[_Member]:
    found: list[_Member] = []
    for number in range(count):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        member = _Member(number, reader, writer)
        await member.beat()
        found.append(member)
    return found


async def _flood(server: Server, count: int, seconds: float) -> tuple[float, float]:
    """Heartbeats a second, and the server's share of a core."""
    members = await _members(server, count)
    done = 0
    until = time.perf_counter() + seconds

    async def run(member: _Member) -> None:
        nonlocal done
        while time.perf_counter() < until:
            await member.beat()
            done += 1

    started, cpu = time.perf_counter(), server.cpu_s()
    await asyncio.gather(*(run(member) for member in members))
    elapsed = time.perf_counter() - started
    share = (server.cpu_s() - cpu) / elapsed
    for member in members:
        member.close()
    return done / elapsed, share


async def _steady(server: Server, count: int, seconds: float) -> tuple[float, int, float]:
    """The server's share of a core, its memory, and the longest answer in milliseconds."""
    members = await _members(server, count)
    start = time.perf_counter() + 1
    worst = 0.0

    async def run(number: int, member: _Member) -> None:
        nonlocal worst
        due = start + _INTERVAL_S * number / count
        while due < start + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent = time.perf_counter()
            await member.beat()
            worst = max(worst, time.perf_counter() - sent)
            due += _INTERVAL_S

    running = asyncio.gather(*(run(number, member) for number, member in enumerate(members)))
    await asyncio.sleep(max(0.0, start - time.perf_counter()))
    cpu = server.cpu_s()
    await asyncio.sleep(seconds)
    share = (server.cpu_s() - cpu) / seconds
    await running
    memory = server.memory_bytes()
    for member in members:
        member.close()
    return share, memory, worst * 1000


# --- In process -----------------------------------------------------------------------------------


_CONFIG: Final = {"message.max.bytes": "16777216"}
"""The first of 10,000 members is assigned 100,000 partitions, for a moment. Target and assignment
are a record each; with the default, 1 MB, the broker refuses to let it join."""


class InProcessCore:
    """The core alone, at a time of its own."""

    def __init__(self, **topics: int) -> None:
        self.now_ms = 1_000_000
        ids = iter(range(1, 1 << 40))
        self.core = ClusterCore.create(
            BrokerConfig(values=_CONFIG), lambda: next(ids).to_bytes(16, "big"), self.now_ms
        )
        self.topics: dict[TopicId, str] = {}
        """Topic id -> name."""
        for name, n in topics.items():  # one by one: Kafka makes no 10,000 partitions in a request
            row = CreateTopicsRequestCreatableTopic(
                name=name, num_partitions=n, replication_factor=1
            )
            created = self.ask(CreateTopicsRequest(topics=(row,), timeout_ms=1000), 7).topics[0]
            if created.error_code:
                raise RuntimeError(f"topic {name}: {created.error_message}")
            self.topics[TopicId(created.topic_id)] = name

    def ask(self, request: Any, version: int = _VERSION) -> Any:
        """One request; its response."""
        event = RequestReceived(1, 1, version, LOCAL_CLIENT, request)
        (reply,) = (each for each in self.core.step(self.now_ms, event) if isinstance(each, Reply))
        return reply.response


def _in_process(count: int, seconds: float) -> float:
    """Heartbeats a second of a group that has settled."""
    core = InProcessCore(t=10)
    epochs = {f"member-{i:05d}": 0 for i in range(count)}
    for _ in range(3):
        for member_id, epoch in epochs.items():
            epochs[member_id] = core.ask(_request(member_id, epoch)).member_epoch
        core.now_ms += 1500
    requests = [_request(member_id, epoch) for member_id, epoch in epochs.items()]
    done, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        core.now_ms += 10
        for request in requests[:1000]:
            core.ask(request)
        done += min(1000, len(requests))
        requests = requests[1000:] + requests[:1000]
    return done / (time.perf_counter() - started)


def _converge(members: int, topics: int, partitions: int) -> tuple[float, int, int]:
    """Seconds, heartbeats, and the greatest resident memory in bytes."""
    names = tuple(f"t{i:03d}" for i in range(topics))
    core = InProcessCore(**dict.fromkeys(names, partitions))
    epochs = {f"member-{i:05d}": 0 for i in range(members)}
    owned: dict[str, tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...]] = {}
    beats, started = 0, time.perf_counter()
    while True:
        for member_id, epoch in epochs.items():
            request = _request(member_id, epoch)
            if not epoch:
                request.subscribed_topic_names = names
            elif member_id in owned:
                request.topic_partitions = owned.pop(member_id)
            response = core.ask(request)
            beats += 1
            epochs[member_id] = response.member_epoch
            if response.assignment is not None:
                owned[member_id] = tuple(
                    ConsumerGroupHeartbeatRequestTopicPartitions(
                        topic_id=row.topic_id, partitions=row.partitions
                    )
                    for row in response.assignment.topic_partitions
                )
        core.now_ms += 1000
        group = core.core.groups.snapshot("bench")
        assert group is not None
        if group.state == "Stable" and not owned:
            break
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return time.perf_counter() - started, beats, memory


# --- The command ----------------------------------------------------------------------------------


def _raise_limits(connections: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 100
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        if hard < wanted:
            raise SystemExit(f"{wanted} open files are needed, {hard} are allowed (ulimit -n)")


async def _through_tcp(
    server: Callable[[], contextlib.AbstractAsyncContextManager[Server]],
    count: int,
    seconds: float,
) -> list[str]:
    async with server() as running:
        rate, share = await _flood(running, count, seconds)
        return [f"{rate:,.0f}", f"{share:.0%}", f"{running.memory_bytes() / 1e6:.0f} MB"]


def main(arguments: list[str]) -> int:
    """Run; exit code 1 when a bar is missed."""
    parser = argparse.ArgumentParser(prog="benchmarks coordinator", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each rate (%(default)s)")
    parser.add_argument("--steady-seconds", type=float, default=20.0)
    parser.add_argument("--members", type=int, default=10_000)
    given = parser.parse_args(arguments)
    many, few = given.members, max(1, given.members // 10)
    _raise_limits(many)
    say(f"{machine()}; heartbeat v{_VERSION} of a settled member: {_sizes()}\n")

    rows = [
        [f"in process, {count:,} members", f"{_in_process(count, given.seconds):,.0f}", "", ""]
        for count in (few, many)
    ]
    for count in (few, many):
        label = f"TCP, {count:,} members"
        rows.append([label, *asyncio.run(_through_tcp(_ours, count, given.seconds))])
    label = f"TCP, {few:,} members, librdkafka's mock"
    rows.append([label, *asyncio.run(_through_tcp(_librdkafkas, few, given.seconds))])
    say(table(["heartbeats", "a second", "server's core", "memory"], rows))

    async def steady() -> tuple[float, int, float]:
        async with _ours() as server:
            return await _steady(server, many, given.steady_seconds)

    share, memory, worst_ms = asyncio.run(steady())
    say(
        f"\nsteady: {many:,} members every {_INTERVAL_S:g} s: {share:.0%} of a core "
        f"(bar {_CPU_BAR:.0%}), {memory / 1e6:.0f} MB (bar {_MEMORY_BAR_BYTES / 1e6:.0f} MB), "
        f"longest answer {worst_ms:.0f} ms"
    )
    seconds, beats, peak = _converge(many, 100, max(1, many // 10))
    say(
        f"converge: {many:,} members on {100 * max(1, many // 10):,} partitions: {seconds:.1f} s, "
        f"{beats:,} heartbeats, {peak / 1e6:.0f} MB (bar {_MEMORY_BAR_BYTES / 1e6:.0f} MB)"
    )
    met = share < _CPU_BAR and memory < _MEMORY_BAR_BYTES and peak < _MEMORY_BAR_BYTES
    say("bars: " + ("met" if met else "MISSED"))
    return 0 if met else 1


def _sizes() -> str:
    request = encode(_request("member-00000", 3), _VERSION)
    response = encode(ConsumerGroupHeartbeatResponse(member_id="member-00000"), _VERSION)
    return f"{len(request)} bytes out, {len(response)} back"
