"""What an output by time has: ranges of offsets by partition, and the names of its files. Pure.

A file is named after the partition and the first offset of the range that it was written from. The
index has the ranges whose files are all in place. So a range is never written twice, whichever
batches or checkpoints it comes in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from kip848_client.spark.pipeline._errors import OutputRefused, PipelineFailed

__all__ = ["INDEX", "PART", "Part", "WrittenIndex", "file_name", "targets"]

INDEX: Final = "_offsets.json"
"""The file of the index; Parquet readers ignore names that begin with an underscore."""
PART: Final = "__kip848_part"
"""The temporary column with the number of the part that a row belongs to."""
_STAGED: Final = re.compile(rf"(?:(?P<folder>.+)/)?{PART}=(?P<part>\d+)/[^/_.][^/]*\.parquet")

Spans = Mapping[str, Mapping[str, tuple[int, int]]]


class Part(NamedTuple):
    """A range of offsets that the output does not have yet."""

    topic: str
    partition: int
    start: int
    end: int
    """The offset after the last one."""


@dataclass(frozen=True, slots=True)
class WrittenIndex:
    """The content of the file. It is replaced twice per batch: before the files of the batch are
    put in place, with their names, and afterwards, with their ranges."""

    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    """The ids of the topics."""
    written: Mapping[tuple[str, int], tuple[tuple[int, int], ...]] = field(
        default_factory=dict[tuple[str, int], tuple[tuple[int, int], ...]]
    )
    """Sorted ranges by topic and partition. Adjacent ones are joined."""
    pending: tuple[str, ...] = ()
    """Files, relative to the output, that a batch puts in place. If the batch is interrupted, the
    next driver removes them."""

    def lacking(self, ranges: Spans, topics: Mapping[str, str], output: str) -> list[Part]:
        """The parts of a batch that are not written yet. Raises ``OutputRefused`` for a topic that
        was created again: its offsets, and so its file names, begin again."""
        for topic in sorted(topics):
            known = self.topics.get(topic)
            if known is not None and known != topics[topic]:
                raise OutputRefused(
                    f"topic {topic} was created again since the output {output} was written: its "
                    "offsets begin again, so new files would replace those of the old topic. Write "
                    "to a new directory (sink.path)"
                )
        found: list[Part] = []
        for topic, partitions in sorted(ranges.items()):
            for number, (start, end) in sorted(partitions.items(), key=lambda each: int(each[0])):
                partition, at = int(number), start
                for begin, stop in self.written.get((topic, partition), ()):
                    if at < begin and at < end:
                        found.append(Part(topic, partition, at, min(begin, end)))
                    at = max(at, stop)
                if at < end:
                    found.append(Part(topic, partition, at, end))
        return found

    def begun(self, files: Iterable[str]) -> WrittenIndex:
        """Before the files of a batch are put in place."""
        return WrittenIndex(self.topics, self.written, tuple(sorted(files)))

    def done(self, parts: Iterable[Part], topics: Mapping[str, str]) -> WrittenIndex:
        """After the files of a batch are in place."""
        spans = {tp: list(each) for tp, each in self.written.items()}
        for part in parts:
            spans.setdefault((part.topic, part.partition), []).append((part.start, part.end))
        written = {tp: _joined(each) for tp, each in sorted(spans.items())}
        return WrittenIndex({**self.topics, **topics}, written)

    def to_json(self) -> str:
        """The text of the file."""
        written: dict[str, dict[str, list[list[int]]]] = {}
        for (topic, partition), spans in sorted(self.written.items()):
            written.setdefault(topic, {})[str(partition)] = [list(span) for span in spans]
        found = {"topics": self.topics, "written": written, "pending": self.pending}
        return json.dumps(found, sort_keys=True) + "\n"

    @classmethod
    def of(cls, text: str, path: str) -> WrittenIndex:
        """Read the text of the file. Raises ``OutputRefused``."""
        try:
            content = cast("dict[str, Any]", json.loads(text))
            written = {
                (str(topic), int(number)): _joined([(int(a), int(b)) for a, b in spans])
                for topic, partitions in content["written"].items()
                for number, spans in partitions.items()
            }
            pending = tuple(str(each) for each in content["pending"])
            return cls(dict(content["topics"]), written, pending)
        except (ValueError, KeyError, TypeError, AttributeError) as err:
            raise OutputRefused(
                f"{path}, which lists the offsets in the output, cannot be read ({err}). Restore "
                "it, or write to a new directory (sink.path)"
            ) from err


def file_name(part: Part) -> str:
    """``orders+0+00000000000000000400.parquet``. Readers ignore names that begin with an underscore
    or a dot, so a plus precedes such a topic; no topic has one in its name."""
    visible = f"+{part.topic}" if part.topic.startswith(("_", ".")) else part.topic
    return f"{visible}+{part.partition}+{part.start:020}.parquet"


def targets(staged: Iterable[str], parts: Sequence[Part]) -> dict[str, str]:
    """Where each staged Parquet file goes: paths relative to staging directory and output. Raises
    ``PipelineFailed`` if two files would get one name."""
    found: dict[str, str] = {}
    for path in sorted(staged):
        match = _STAGED.fullmatch(path)
        if match is None:
            continue
        name = file_name(parts[int(match["part"])])
        found[path] = name if match["folder"] is None else f"{match['folder']}/{name}"
    if len(set(found.values())) < len(found):
        raise PipelineFailed(
            "Spark wrote two files for one partition and hour, and they would get one name; remove "
            "what splits files (spark.sql.files.maxRecordsPerFile)"
        )
    return found


def _joined(spans: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)
