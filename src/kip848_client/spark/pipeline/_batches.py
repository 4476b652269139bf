"""Directories of batches: one per batch of the query, complete or absent.

A batch is written to a staging directory, which is then renamed. Spark repeats a batch that a
crash has interrupted; the repetition replaces the first attempt. So the output always has the last
attempt of each batch. A member's batch may have fewer rows when it is repeated (another member then
reads the rest), which is correct, too.

``_batch.json`` in each directory has the offsets of the rows. If a process died before its offsets
were committed to the group, a member that comes back uses them to continue after what it has
written.
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
"""The staging directory; Parquet readers ignore names that begin with an underscore."""
NOTE: Final = "_batch.json"
_DRIVER: Final = "_driver.json"
_NOTES_MAX: Final = 100
"""The number of last batches to read: a group is rarely more than one behind."""

Ranges = Mapping[str, Mapping[str, tuple[int, int]]]
"""First offset, and the offset after the last one, by topic and partition."""


@dataclass(frozen=True, slots=True)
class BatchNote:
    """The content of a batch."""

    batch: int
    rows: int
    ranges: Ranges
    topics: Mapping[str, str]
    """The ids of the topics."""

    def to_json(self) -> str:
        """The text of the file."""
        said = {
            "batch": self.batch,
            "rows": self.rows,
            "ranges": self.ranges,
            "topics": self.topics,
        }
        return json.dumps(said, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> BatchNote:
        """Read the text of the file. Raises ``OutputRefused``."""
        try:
            said = cast("dict[str, Any]", json.loads(text))
            ranges = {
                str(topic): {str(number): (int(a), int(b)) for number, (a, b) in spans.items()}
                for topic, spans in said["ranges"].items()
            }
            return cls(int(said["batch"]), int(said["rows"]), ranges, dict(said["topics"]))
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(f"{path} cannot be read: {err}; was it changed manually?") from err


def written_ranges(notes: Iterable[BatchNote]) -> dict[str, Any]:
    """The content of batches, for the source's option ``written``: sorted ranges by partition, with
    adjacent ones joined, and the ids of the topics. If a topic was created again, only the batches
    after that count."""
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
    """One output directory, written by one driver."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self._path = path.rstrip("/")
        self._token = secrets.token_hex(8)

    def take_over(self) -> None:
        """Make this the only driver that writes here: one that still runs elsewhere ends with
        ``DriverReplaced``. Incomplete files of earlier drivers are removed."""
        who = {"token": self._token, "host": platform.node(), "pid": os.getpid()}
        self._files.write(f"{self._path}/{_DRIVER}", json.dumps(who, sort_keys=True) + "\n")
        self._files.remove(f"{self._path}/{STAGING}")

    def staged(self, number: int) -> str:
        """The staging directory for the rows of a batch."""
        return f"{self._path}/{STAGING}/{self._token}-{number}"

    def discard(self, number: int) -> None:
        """Remove the staging directory of a batch."""
        self._files.remove(self.staged(number))

    def publish(self, note: BatchNote) -> None:
        """Publish a batch from its staging directory; it replaces an earlier attempt. Raises
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
        """Remove a published batch, which has no rows any more. Raises ``DriverReplaced``."""
        self.check_driver()
        self._files.remove(f"{self._path}/{batch_name(number)}")

    def check_driver(self) -> None:
        """Raise ``DriverReplaced`` if another driver has taken over the output."""
        text = self._files.read(f"{self._path}/{_DRIVER}")
        try:
            said = cast("dict[str, Any]", json.loads(text or "{}"))
        except ValueError:
            said = {}
        if said.get("token") != self._token:
            who = f"process {said.get('pid')} on {said.get('host')}" if said else "another process"
            raise DriverReplaced(_replaced(self._path, who))

    def last_notes(self, done: int | None) -> list[BatchNote]:
        """The last batches in Spark's commit log (up to ``done``). Raises ``OutputRefused``."""
        numbers = sorted(
            number
            for name in self._files.names(self._path)
            if (number := batch_number(name)) is not None and done is not None and number <= done
        )
        found: list[BatchNote] = []
        for number in numbers[-_NOTES_MAX:]:
            path = f"{self._path}/{batch_name(number)}/{NOTE}"
            text = self._files.read(path)
            if text is not None:  # the user has moved the file away
                found.append(BatchNote.of(text, path))
        return found


def _replaced(path: str, who: str) -> str:
    return (
        f"{who} has taken over the output {path}: two drivers run with one checkpoint. This one "
        "has written nothing since, and stops; run only one"
    )
