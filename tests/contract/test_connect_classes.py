"""Kafka Connect's own classes read what ours write, and the other way round."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kip848_client.core.connect import (
    Items,
    Round,
    RoundMemory,
    WorkerAssignment,
    WorkerMetadata,
    incremental_round,
)
from kip848_client.errors import WireError
from tests.support.connect.oracle import (
    ConnectOracle,
    assignment_line,
    assignment_words,
    metadata_line,
    metadata_words,
    name_word,
    names_of,
    round_words,
    tasks_of,
)
from tests.support.connect.sequences import Cluster
from tests.support.connect.values import assignments, metadata
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = pytest.mark.real_kafka

T = TypeVar("T")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> ConnectOracle:
    with skip_without_kafka():
        return ConnectOracle(tmp_path_factory.mktemp("connect"))


def _many(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    found: list[T] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found


@st.composite
def _harmed(draw: st.DrawFn) -> tuple[str, bytes]:
    """What is to be read, and bytes with a part missing, changed or repeated."""
    said = draw(metadata() | assignments())
    raw = bytearray(said.encode())
    at = draw(st.integers(2, len(raw) - 1))
    harm = draw(st.sampled_from(["cut", "changed", "added"]))
    if harm == "cut":
        del raw[at:]
    elif harm == "changed":
        raw[at] ^= draw(st.integers(1, 255))
    else:
        raw += b"more"
    return ("metadata" if isinstance(said, WorkerMetadata) else "assignment"), bytes(raw)


def _read(kind: str, raw: bytes) -> list[str] | None:
    """What we make of bytes, in the words of Kafka's reader of their version."""
    try:
        if kind == "metadata":
            worker = WorkerMetadata.decode(raw)
            return metadata_words(worker)
        told = WorkerAssignment.decode(raw)
    except WireError:
        return None
    words = assignment_words(told)
    return words if told.version else words[:6]


def test_kafkas_classes_write_and_read_the_same(oracle: ConnectOracle) -> None:
    workers, told = _many(metadata(), 200), _many(assignments(), 200)
    harmed = _many(_harmed(), 300)
    lines = [metadata_line(each) for each in workers]
    lines += [assignment_line(each) for each in told]
    for reader in "01":
        lines += [f"read-metadata {reader} {each.encode().hex()}" for each in workers]
    for reader in "01":
        lines += [f"read-assignment {reader} {each.encode().hex()}" for each in told]
    for kind, raw in harmed:
        reader = "0" if raw[:2] == b"\0\0" else "1"
        lines.append(f"read-{kind} {reader} {raw.hex()}")
    answers = iter(oracle.ask(lines))

    written = [each.encode().hex() for each in workers] + [each.encode().hex() for each in told]
    for bytes_of_it in written:
        assert next(answers) == bytes_of_it
    for each in workers:  # their eager reader
        assert next(answers).split() == metadata_words(each)[:2], each
    for each in workers:  # the reader of versions 1 and 2, of version 0, too
        read = WorkerMetadata.decode(each.encode())
        assert next(answers).split() == metadata_words(read), each
    understood = [assignment_words(WorkerAssignment.decode(each.encode())) for each in told]
    for words in understood:
        assert next(answers).split() == words[:6]
    for words in understood:
        assert next(answers).split() == words
    agreed = 0
    for kind, raw in harmed:
        ours, theirs = _read(kind, raw), next(answers)
        assert ours is None or theirs.split() == ours, (kind, raw.hex(), theirs)
        agreed += (ours is None) == theirs.startswith("refused")
    assert agreed > 0.8 * len(harmed)  # ours also refuse broken texts and negative numbers


def _said(answer: str) -> tuple[int, tuple[str, ...], dict[str, tuple[Items, Items]]]:
    """The delay, the candidates, and what each worker is to begin with and to stop."""
    words = answer.split()
    told = {
        words[at]: (
            Items(names_of(words[at + 1]), tasks_of(words[at + 2])),
            Items(names_of(words[at + 3]), tasks_of(words[at + 4])),
        )
        for at in range(2, len(words), 5)
    }
    return int(words[0]), names_of(words[1]), told


def _ours(done: Round) -> tuple[int, tuple[str, ...], dict[str, tuple[Items, Items]]]:
    told = {name_word(each): (row.start, row.stop) for each, row in done.workers.items()}
    return done.delay_ms, done.memory.waiting.candidates, told


def _history(seed: int) -> tuple[list[str], list[Round]]:
    """The questions of one history, and what ours answer. Sometimes a result does not arrive, and
    sometimes nobody knows of the last generation."""
    rng = random.Random(seed)
    cluster = Cluster(rng)
    cluster.begin()
    runs: Mapping[str, Items] = {}
    memory, generation, passed = RoundMemory(), 1_000, 0
    lines, rounds = [f"assignor {cluster.max_delay_ms}"], []
    for _ in range(12):
        generation += 1
        completed = generation - rng.choice([1] * 9 + [2])
        reported = {each: runs.get(each, Items()) for each in cluster.workers}
        if rng.random() < 0.05 and len(reported) > 1:  # two claim the same
            one, other = rng.sample(cluster.workers, 2)
            reported[other] = reported[one]
        words = round_words(cluster.connectors, reported)
        lines.append(" ".join(["round", str(completed), str(generation), str(passed), *words]))
        done = incremental_round(
            cluster.connectors,
            reported,
            memory,
            now_ms=cluster.now_ms,
            completed=completed,
            generation=generation,
            max_delay_ms=cluster.max_delay_ms,
        )
        memory = done.memory
        rounds.append(done)
        runs = {each: row.runs for each, row in done.workers.items()}
        if rng.random() < 0.1:
            runs = reported
        passed = cluster.change()
    return lines, rounds


def test_the_rounds_of_random_histories_are_those_of_kafkas_class(oracle: ConnectOracle) -> None:
    histories = [_history(seed) for seed in range(300)]
    answers = iter(oracle.ask(line for lines, _ in histories for line in lines))
    for seed, (_, rounds) in enumerate(histories):
        assert next(answers) == "-"
        for number, done in enumerate(rounds, 1):
            assert _ours(done) == _said(next(answers)), f"history {seed}, round {number}"
