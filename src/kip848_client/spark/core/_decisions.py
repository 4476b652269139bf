"""What is decided of a batch, as it is kept: in the committed offsets of a group.

The group has the name of the query's ``kafka.transactional.id``. The offset is the number of the
batch, the text beside it names the tasks whose transactions are its rows. A text has a limit
(``offset.metadata.max.bytes``, 4096 by default), so that a decision may have several, each at a
partition of its own that exists; they are written in one transaction. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.types import TopicPartition

__all__ = ["Decision", "Kept", "Participant", "is_of", "kept_in", "texts_of"]

_TEXT_MAX: Final = 3_800
_RUN: Final = r"[0-9a-f]{12}"


@dataclass(frozen=True, slots=True, order=True)
class Participant:
    """The transaction of a task."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it is a transaction of version 2 (KIP-890)."""
    rows: int


@dataclass(frozen=True, slots=True)
class Decision:
    """These transactions are the rows of a batch."""

    query: str
    """Spark's id of the query: it is the checkpoint's."""
    batch: int
    run: str
    """Of the run of the query that decided."""
    participants: tuple[Participant, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What a group keeps."""

    decisions: tuple[Decision, ...]
    places: frozenset[TopicPartition]
    """All places that have a text, also one that is superseded."""


def is_of(name: str, run: str | None, transactional_id: str) -> bool:
    """Whether this is the transactional id of a task of the query of that name, in this run, or in
    any. A name may begin with another one, and ids of others may look like both."""
    which = _RUN if run is None else re.escape(run)
    return re.fullmatch(rf"{re.escape(name)}-{which}-\d+-\d+", transactional_id) is not None


def texts_of(name: str, decision: Decision) -> list[str]:
    """The texts that say a decision."""
    prefix = f"{name}-{decision.run}-"
    tasks = [
        [
            each.transactional_id.removeprefix(prefix),
            each.producer_id,
            each.epoch,
            int(each.is_v2),
            each.rows,
        ]
        for each in decision.participants
    ]
    chunks: list[list[Any]] = [[]]
    size = 0
    for task in tasks:
        length = len(_json(task)) + 1
        if size + length > _TEXT_MAX - 200 and chunks[-1]:
            chunks.append([])
            size = 0
        chunks[-1].append(task)
        size += length
    head = {"v": 1, "query": decision.query, "batch": decision.batch, "run": decision.run}
    return [
        _json({**head, "part": part, "of": len(chunks), "tasks": chunk})
        for part, chunk in enumerate(chunks)
    ]


def kept_in(name: str, texts: Mapping[TopicPartition, str]) -> Kept:
    """What the texts of a group say. One that is no part of a decision counts for nothing, and so
    do parts of a decision of which others were superseded."""
    parts: dict[tuple[str, int, str], dict[int, list[Participant]]] = {}
    counts: dict[tuple[str, int, str], int] = {}
    for text in texts.values():
        try:
            said = json.loads(text)
            key = (str(said["query"]), int(said["batch"]), str(said["run"]))
            found = [_participant(name, key[2], task) for task in said["tasks"]]
            parts.setdefault(key, {})[int(said["part"])] = found
            counts[key] = int(said["of"])
        except (ValueError, KeyError, TypeError, IndexError):
            continue
    decisions = [
        Decision(*key, tuple(each for part in sorted(found) for each in found[part]))
        for key, found in sorted(parts.items())
        if len(found) == counts[key]
    ]
    return Kept(tuple(decisions), frozenset(tp for tp, text in texts.items() if text))


def _participant(name: str, run: str, task: list[Any]) -> Participant:
    label, producer_id, epoch, is_v2, rows = task
    return Participant(
        f"{name}-{run}-{label}", int(producer_id), int(epoch), bool(is_v2), int(rows)
    )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
