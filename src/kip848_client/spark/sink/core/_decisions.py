"""How a decision about a batch is stored: in the committed offsets of a group. Pure.

The group's name is the query's ``kafka.transactional.id``. The offset is the number of the batch,
its metadata names the tasks whose transactions make up the batch. Metadata is limited
(``offset.metadata.max.bytes``, 4096 by default), so a decision may need several partitions, which
must exist; they are written in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.types import TopicPartition
from kip848_client.spark.sink.core._transactional_ids import with_label, without_name

__all__ = ["Decision", "Kept", "Participant", "kept_in", "texts_of"]

_TEXT_MAX: Final = 3_800


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
    """These transactions make up a batch."""

    query: str
    """Spark's id of the query, which is in its checkpoint."""
    batch: int
    run: str
    """The run of the query that decided."""
    participants: tuple[Participant, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """The decisions that a group stores."""

    decisions: tuple[Decision, ...]
    places: frozenset[TopicPartition]
    """All partitions with metadata, including replaced decisions."""


def texts_of(name: str, decision: Decision) -> list[str]:
    """The metadata texts for a decision, one per partition."""
    tasks = [
        [
            without_name(name, decision.run, each.transactional_id),
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
    """Read the metadata texts of a group. Texts that are not part of a decision are ignored, as are
    decisions with some parts replaced."""
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
        with_label(name, run, label), int(producer_id), int(epoch), bool(is_v2), int(rows)
    )


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
