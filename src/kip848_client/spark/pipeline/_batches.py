"""Directories of batches: each batch of the query has one, whole or not at all.

A batch is written beside, and its directory renamed. Spark repeats a batch that a crash has
interrupted: it takes the place of the first try, whatever that had. So the output has at any time
what the last try of each batch has, and a batch of a member of a group, which may have fewer rows
when it is repeated (the rest is then another member's), is right as well.

``_batch.json`` in each directory says which offsets the rows come from. With them a member that
comes back goes on after what it has written, where its process died before the group was told.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import DriverReplaced, OutputRefused
from kip848_client.spark.pipeline._files import Files
from kip848_client.spark.pipeline.core._guard import batch_name, batch_number

__all__ = ["NOTE", "STAGING", "BatchNote", "BatchOutput", "Ranges", "written_ranges"]

STAGING: Final = "_staging"
"""What is being written is in there: no reader of Parquet looks into such a directory."""
NOTE: Final = "_batch.json"
_DRIVER: Final = "_driver.json"
_NOTES_MAX: Final = 100
"""So many of the last batches are looked at: a group is seldom more than one behind."""

Ranges = Mapping[str, Mapping[str, tuple[int, int]]]
"""From and to, by topic and partition, as in the manifest of the source."""


@dataclass(frozen=True, slots=True)
class BatchNote:
    """What a batch has."""

    batch: int
    rows: int
    ranges: Ranges
    topics: Mapping[str, str]
    """The ids of the topics."""

    def to_json(self) -> str:
        """As it is in the file."""
        said = {
            "batch": self.batch,
            "rows": self.rows,
            "ranges": self.ranges,
            "topics": self.topics,
        }
        return json.dumps(said, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> BatchNote:
        """From the file. Raises ``OutputRefused``."""
        try:
            said = cast("dict[str, Any]", json.loads(text))
            ranges = {
                str(topic): {str(number): (int(a), int(b)) for number, (a, b) in spans.items()}
                for topic, spans in said["ranges"].items()
            }
            return cls(int(said["batch"]), int(said["rows"]), ranges, dict(said["topics"]))
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(f"{path} cannot be read: {err}; was it changed by hand?") from err


def written_ranges(notes: Iterable[BatchNote]) -> dict[str, Any]:
    """What batches have, for the source's option ``written``: ranges by partition in their order,
    those that touch as one, and the ids of the topics. Of a topic that was created again meanwhile
    only what came after that counts."""
    known = list(notes)
    ids: dict[str, str] = {}
    for note in known:
        ids |= note.topics
    spans: dict[tuple[str, str], list[list[int]]] = {}
    for note in known:
        for topic, partitions in note.ranges.items():
            for number, (start, end) in partitions.items():
                if start < end and note.topics.get(topic) == ids.get(topic):
                    spans.setdefault((topic, number), []).append([start, end])
    found: dict[str, dict[str, list[list[int]]]] = {}
    for (topic, number), each in sorted(spans.items()):
        joined: list[list[int]] = []
        for start, end in sorted(each):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        found.setdefault(topic, {})[number] = joined
    return {"topics": dict(sorted(ids.items())), "ranges": found}


class BatchOutput:
    """One output directory, as one driver writes it."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path.rstrip("/")
        self._token = secrets.token_hex(8)

    def take_over(self) -> None:
        """From now on this driver writes here, and no other: one that still runs elsewhere ends
        with ``DriverReplaced``. What earlier ones have left half written is removed."""
        who = {"token": self._token, "host": platform.node(), "pid": os.getpid()}
        self._files.write(f"{self._path}/{_DRIVER}", json.dumps(who, sort_keys=True) + "\n")
        self._files.remove(f"{self._path}/{STAGING}")

    def staged(self, number: int) -> str:
        """Where the rows of a batch are to be written first."""
        return f"{self._path}/{STAGING}/{self._token}-{number}"

    def discard(self, number: int) -> None:
        """Remove what was written so far of a batch."""
        self._files.remove(self.staged(number))

    def publish(self, note: BatchNote) -> None:
        """Give a batch that is written its place; a first try that is there goes. Raises
        ``DriverReplaced``."""
        self._files.write(f"{self.staged(note.batch)}/{NOTE}", note.to_json())
        self.check_driver()
        target = f"{self._path}/{batch_name(note.batch)}"
        self._files.remove(target)
        try:
            self._files.move(self.staged(note.batch), target)
        except FileExistsError:
            raise DriverReplaced(_replaced(self._path, "another process")) from None

    def withdraw(self, number: int) -> None:
        """A batch has no rows here (any more). Raises ``DriverReplaced``."""
        self.check_driver()
        self._files.remove(f"{self._path}/{batch_name(number)}")

    def check_driver(self) -> None:
        """Raises ``DriverReplaced`` when another driver has taken the output over."""
        text = self._files.read(f"{self._path}/{_DRIVER}")
        try:
            said = cast("dict[str, Any]", json.loads(text or "{}"))
        except ValueError:
            said = {}
        if said.get("token") != self._token:
            who = f"process {said.get('pid')} on {said.get('host')}" if said else "somebody"
            raise DriverReplaced(_replaced(self._path, who))

    def last_notes(self, done: int | None) -> list[BatchNote]:
        """The last batches that Spark has in its log of commits (up to ``done``). Raises
        ``OutputRefused``."""
        numbers = sorted(
            number
            for name in self._files.names(self._path)
            if (number := batch_number(name)) is not None and done is not None and number <= done
        )
        found: list[BatchNote] = []
        for number in numbers[-_NOTES_MAX:]:
            path = f"{self._path}/{batch_name(number)}/{NOTE}"
            text = self._files.read(path)
            if text is not None:  # whoever moved the rest away knows why
                found.append(BatchNote.of(text, path))
        return found


def _replaced(path: str, who: str) -> str:
    return (
        f"{who} has taken the output {path} over: two drivers run with one checkpoint. This one "
        "has written nothing since, and ends; let only one run"
    )
