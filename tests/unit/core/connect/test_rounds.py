"""The Java form: equal to recorded runs of Kafka's class in everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.core.connect import ConnectorTaskId, Items, RoundMemory, incremental_round
from kip848_client.core.connect._balance import fill
from kip848_client.core.connect._draft import backoff_ms
from kip848_client.core.connect._rounds import _java_backoff_ms

RECORDED: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "vectors" / "connect-assignor.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def _items(pair: list[list[str]]) -> Items:
    connectors, tasks = pair
    found = [each.rsplit("-", 1) for each in tasks]
    return Items(tuple(connectors), tuple(ConnectorTaskId(name, int(task)) for name, task in found))


def _play(operation: Any, connectors: dict[str, int], workers: dict[str, Items]) -> int:
    """Apply an operation; how far it moves the clock."""
    match operation:
        case {"add_workers": ids}:
            workers.update(dict.fromkeys(ids, Items()))
        case {"add_worker_with": [worker, *pair]}:
            workers[worker] = _items(pair)
        case {"remove_workers": ids}:
            for each in ids:
                del workers[each]
        case {"add_connector": [name, tasks]}:
            connectors[name] = tasks
        case {"remove_connector": name}:
            del connectors[name]
        case {"advance_ms": ms}:
            return int(ms)
        case _:
            raise AssertionError(operation)
    return 0


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["id"] for each in RECORDED])
def test_a_round_is_that_of_the_java_class(recorded: dict[str, Any]) -> None:
    initial = recorded["initial"]
    connectors = dict(initial["connectors"])
    workers = dict.fromkeys(initial["workers"], Items())
    memory, generation, now_ms = RoundMemory(), 1000, 1_000_000
    for number, step in enumerate(recorded["steps"], 1):
        for operation in step["ops"]:
            if operation == "new_assignor_instance":
                memory = RoundMemory()
            else:
                now_ms += _play(operation, connectors, workers)
        generation += 1
        done = incremental_round(
            connectors,
            workers,
            memory,
            now_ms=now_ms,
            completed=generation - (2 if step["round"] == "gen_mismatch" else 1),
            generation=generation,
            max_delay_ms=initial["max_delay_ms"],
        )
        memory = done.memory
        where = f"{recorded['id']} step {number}"
        assert done.delay_ms == step["delay"], where
        assert list(memory.waiting.candidates) == step["candidates"], where
        stopped = {worker: told.stop for worker, told in done.workers.items() if told.stop}
        assert stopped == {each: _items(pair) for each, pair in step["revoked"].items()}, where
        if step["round"] != "not_delivered":
            for worker, told in done.workers.items():
                workers[worker] = _applied(workers[worker], told.start, told.stop)
                assert workers[worker] == told.runs, where
        assert workers == {each: _items(pair) for each, pair in step["after"].items()}, where


def _applied(runs: Items, start: Items, stop: Items) -> Items:
    return Items(
        tuple(each for each in runs.connectors if each not in stop.connectors) + start.connectors,
        tuple(each for each in runs.tasks if each not in stop.tasks) + start.tasks,
    )


@pytest.mark.parametrize(
    ("max_delay_ms", "delays"),
    [
        (0, [0, 0, 0, 0, 0, 0]),
        (1, [1, 1, 1, 1, 1, 1]),
        (40, [1, 40, 40, 40, 40, 40]),
        (41, [1, 40, 41, 41, 41, 41]),
        (1_000, [1, 40, 999, 999, 999, 999]),
        (60_000, [1, 40, 1_600, 60_000, 60_000, 60_000]),
        (300_000, [1, 40, 1_600, 64_000, 300_000, 300_000]),
        (600_000, [1, 40, 1_600, 64_000, 599_999, 599_999]),
    ],
)
def test_how_long_workers_rest(max_delay_ms: int, delays: list[int]) -> None:
    assert [_java_backoff_ms(rounds, max_delay_ms) for rounds in range(6)] == delays
    clean = [backoff_ms(rounds, max_delay_ms) for rounds in range(6)]
    assert all(ours - theirs in (0, 1) for ours, theirs in zip(clean, delays, strict=True))


def test_items_go_to_who_has_the_least() -> None:
    held = {"w0": [0, 1], "w1": [2, 3], "w2": [4, 5]}
    fill(held, range(6, 11))
    assert held == {"w0": [0, 1, 6, 9], "w1": [2, 3, 7, 10], "w2": [4, 5, 8]}
    held = {"w0": [0] * 2, "w1": [0] * 3, "w2": [0] * 4, "w3": []}
    fill(held, range(9, 24))
    assert {each: items[-6:] for each, items in held.items()} == {
        "w0": [0, 0, 12, 14, 17, 21],
        "w1": [0, 0, 0, 15, 18, 22],
        "w2": [0, 0, 0, 0, 19, 23],
        "w3": [9, 10, 11, 13, 16, 20],
    }
    held = {"a": [7], "b": []}
    fill(held, [0, 1, 2])
    assert held == {"a": [7, 2], "b": [0, 1]}  # the order b, a stays


def test_a_group_without_workers_or_connectors() -> None:
    nobody = incremental_round({"A": 1}, {}, RoundMemory(), now_ms=0, completed=-1, generation=1)
    assert (nobody.workers, nobody.delay_ms) == ({}, 0)
    nothing = incremental_round(
        {}, {"w": Items()}, RoundMemory(), now_ms=0, completed=-1, generation=1
    )
    assert not nothing.workers["w"].runs
