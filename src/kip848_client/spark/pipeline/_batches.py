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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from kip848_client.spark.pipeline._errors import OutputRefused
from kip848_client.spark.pipeline._taken_over import TakenOver
from kip848_client.spark.pipeline.core._guard import batch_name, batch_number

__all__ = ["NOTE", "BatchNote", "BatchOutput", "Ranges", "written_ranges"]

NOTE: Final = "_batch.json"
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


class BatchOutput(TakenOver):
    """One output directory, written by one driver."""

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
            raise self.replaced_by("another process") from None

    def withdraw(self, number: int) -> None:
        """Remove a published batch, which has no rows any more. Raises ``DriverReplaced``."""
        self.check_driver()
        self._files.remove(f"{self._path}/{batch_name(number)}")

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
