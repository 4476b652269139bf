"""Every public call of every client, made in another event loop of the same thread, in another
thread, and in a forked child: it is refused at once, or the page says that it may be made anywhere.

``docs/reference/event-loops.md`` has the list of those.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import Admin, Consumer, ExactlyOnceProcessor, Producer, TopicPartition
from kip848_client.admin import NewTopic, ToEarliest
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.aiokafka.structs import TopicPartition as TheirPartition
from kip848_client.connect import Worker
from kip848_client.errors import LocalProtocolError
from mock_coordinator.threaded import BrokerThread

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "event-loops.md"
T0: Final = TopicPartition("t", 0)
ENTERED: Final = ("__aenter__", "__aexit__", "__aiter__", "__anext__")
NO_ERROR: Final = (None, None, None)


class Items:
    async def on_assigned(self, items: Any) -> None: ...
    async def on_revoked(self, items: Any) -> None: ...
    async def on_lost(self, items: Any) -> None: ...


@dataclass(frozen=True)
class Case:
    """A client, and the arguments that its calls take."""

    make: Callable[[str], Any]
    arguments: dict[str, tuple[Any, ...]]


def processor(bootstrap: str) -> ExactlyOnceProcessor[Any, Any]:
    return ExactlyOnceProcessor(
        "t",
        lambda _: None,
        consumer=Consumer(
            bootstrap_servers=bootstrap,
            group_id="p",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ),
        producer=Producer(bootstrap_servers=bootstrap, transactional_id="p"),
    )


CONSUMER: Final[dict[str, tuple[Any, ...]]] = {
    "__aexit__": NO_ERROR,
    "assign": ([T0],),
    "beginning_offsets": ([T0],),
    "committed": (T0,),
    "end_offsets": ([T0],),
    "highwater": (T0,),
    "last_poll_timestamp": (T0,),
    "last_stable_offset": (T0,),
    "offsets_for_times": ({T0: 0},),
    "partitions_for_topic": ("t",),
    "pause": (T0,),
    "position": (T0,),
    "resume": (T0,),
    "seek": (T0, 0),
    "seek_to_beginning": (T0,),
    "seek_to_committed": (T0,),
    "seek_to_end": (T0,),
    "subscribe": (["t"],),
}
PRODUCER: Final[dict[str, tuple[Any, ...]]] = {
    "__aexit__": NO_ERROR,
    "partitions_for": ("t",),
    "send": ("t", b"lost"),
    "send_and_wait": ("t", b"lost"),
    "send_offsets_to_transaction": ({T0: 1}, "g"),
}
CASES: Final = {
    "Consumer": Case(lambda at: Consumer("t", bootstrap_servers=at, group_id="c"), CONSUMER),
    "Producer": Case(lambda at: Producer(bootstrap_servers=at, transactional_id="x"), PRODUCER),
    "Admin": Case(
        lambda at: Admin(bootstrap_servers=at),
        {
            "__aexit__": NO_ERROR,
            "alter_group_configs": ({"g": {"consumer.session.timeout.ms": None}},),
            "alter_group_offsets": ("g", {T0: 1}),
            "alter_topic_configs": ({"t": {"retention.ms": "1"}},),
            "create_partitions": ({"t": 9},),
            "create_topics": ([NewTopic("new", 1)],),
            "delete_group_offsets": ("g", [T0]),
            "delete_groups": (["g"],),
            "delete_topics": (["t"],),
            "describe_group_configs": (["g"],),
            "describe_groups": (["g"],),
            "describe_topic_configs": (["t"],),
            "describe_topics": (["t"],),
            "list_epoch_ends": ({T0: 0},),
            "list_group_offsets": ("g",),
            "list_offsets": ({T0: 0},),
            "reset_group_offsets": ("g", ToEarliest()),
        },
    ),
    "Worker": Case(
        lambda at: Worker({"copy": 1}, Items(), bootstrap_servers=at, group_id="w"),
        {"__aexit__": NO_ERROR, "reconfigure": ({"copy": 2},)},
    ),
    "ExactlyOnceProcessor": Case(processor, {"__aexit__": NO_ERROR}),
    "AIOKafkaConsumer": Case(
        lambda at: AIOKafkaConsumer("t", bootstrap_servers=at, group_id="a"),
        {
            **CONSUMER,
            **{
                name: tuple(TheirPartition(*each) if each == T0 else each for each in given)
                for name, given in CONSUMER.items()
            },
            "assign": ([TheirPartition("t", 0)],),
            "beginning_offsets": ([TheirPartition("t", 0)],),
            "end_offsets": ([TheirPartition("t", 0)],),
            "offsets_for_times": ({TheirPartition("t", 0): 0},),
        },
    ),
    "AIOKafkaProducer": Case(
        lambda at: AIOKafkaProducer(bootstrap_servers=at, transactional_id="y"),
        {**PRODUCER, "send_batch": (None, "t"), "send_offsets_to_transaction": ({}, "g")},
    ),
}
KEYWORDS: Final = {"reconfigure": {"version": 2}, "send_batch": {"partition": 0}}
BLOCKS: Final = ("transaction",)
"""Calls that return a block, which may refuse when it is entered."""
STREAMS: Final = ("events",)
"""Calls that return what is iterated over, which may refuse then."""


def public(kind: type) -> Iterator[str]:
    for name in dir(kind):
        if name.startswith("_") and name not in ENTERED:
            continue
        if not isinstance(inspect.getattr_static(kind, name), property):
            yield name


def safe(client: str) -> set[str]:
    """What the page says that may be called anywhere."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    return set(re.findall(r"`(\w+)`", dict(rows)[client]))


async def outcome(made: Any, name: str, case: Case) -> str:
    """What a call leads to, in a word."""
    arguments = case.arguments.get(name, ())
    if name == "send_batch":
        arguments = (made.create_batch(), *arguments[1:])
    try:
        async with asyncio.timeout(2):
            found = getattr(made, name)(*arguments, **KEYWORDS.get(name, {}))
            if name in BLOCKS:
                await found.__aenter__()
            elif inspect.isawaitable(found):
                await found
    except Exception as err:  # noqa: BLE001 - told as it is
        if isinstance(err, AssertionError) and "same loop as running" in str(err):
            return "refused"  # by aiokafka itself
        is_ours = isinstance(err, LocalProtocolError) or isinstance(
            err.__cause__, LocalProtocolError
        )
        if is_ours and any(word in str(err) for word in ("event loop", "os.fork()")):
            return "refused"
        return f"{type(err).__name__}: {err}"
    return "done"


async def outcomes(made: Any, case: Case) -> dict[str, str]:
    names = [each for each in public(type(made)) if each not in STREAMS]
    return {name: await outcome(made, name, case) for name in names}


def in_another_loop(made: Any, case: Case) -> dict[str, str]:
    return asyncio.run(outcomes(made, case))


def in_another_thread(made: Any, case: Case) -> dict[str, str]:
    found: dict[str, str] = {}
    thread = threading.Thread(target=lambda: found.update(in_another_loop(made, case)))
    thread.start()
    thread.join()
    return found


def in_a_child(made: Any, case: Case) -> dict[str, str]:
    """Also collects the client there."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            found = in_another_loop(made, case)
            gc.collect()
            os.write(there, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(there)
    with os.fdopen(here) as told:
        text = told.read()
    os.waitpid(child, 0)
    found = json.loads(text)
    assert isinstance(found, dict)
    return found


ELSEWHERE: Final = {
    "another loop": in_another_loop,
    "another thread": in_another_thread,
    "a forked child": in_a_child,
}


@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("client", CASES)
def test_every_call(client: str, where: str) -> None:
    case = CASES[client]
    loop = asyncio.new_event_loop()
    with BrokerThread({"t": 1}) as broker:
        made = None

        async def start() -> Any:
            made = case.make(broker.bootstrap)  # aiokafka's look for the loop at once
            await made.start()
            return made

        try:
            made = loop.run_until_complete(start())
            found = ELSEWHERE[where](made, case)
            free = safe(client)
            wrong = {
                name: told
                for name, told in found.items()
                if told not in (("done", "refused") if name in free else ("refused",))
            }
            assert not wrong
            assert found
            unknown = free - {*dir(type(made))}
            assert not unknown, "the page names what there is not"
        finally:
            if made is not None:
                loop.run_until_complete(made.stop())
            loop.close()
