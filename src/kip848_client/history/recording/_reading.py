"""Reads files of events, which may have truncated, duplicate or invalid lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from kip848_client.errors import ConfigError
from kip848_client.history.core import LINE_BYTES_MAX, BadLine, HistoryEvent, parse_line

__all__ = ["Complaint", "Record", "read_files"]

_TOLD: Final = 20


class Complaint(NamedTuple):
    """A line that is not an event.

    Attributes:
        path: The file.
        line: Its number, from 1.
        why: What is wrong, in words.
    """

    path: str
    line: int
    why: str


@dataclass(slots=True)
class Record:
    """The content of some files of events."""

    events: list[HistoryEvent] = field(default_factory=list[HistoryEvent])
    """All events, with duplicates."""
    bad: int = 0
    """How many lines are not events."""
    cut: int = 0
    """How many files end in the middle of a line, as a killed process leaves them."""
    complaints: list[Complaint] = field(default_factory=list[Complaint])
    """The first bad lines."""

    @property
    def missing(self) -> int:
        """How many events are lost.

        Numbers missing between those of a writer, and what writers report as missed.
        """
        numbers: dict[str, set[int]] = {}
        for event in self.events:
            numbers.setdefault(event.writer, set()).add(event.seq)
        lacking = sum(max(found) - min(found) + 1 - len(found) for found in numbers.values())
        told = {(e.writer, e.seq): e.count or 0 for e in self.events if e.kind == "missed"}
        return lacking + sum(told.values())


def read_files(paths: Iterable[str | os.PathLike[str]]) -> Record:
    """Read files of JSON lines. Lines that are not events are counted.

    Args:
        paths: The files.

    Returns:
        The events, and what was wrong. Give ``events`` to ``tables_of``.

    Raises:
        ConfigError: A file cannot be read, or has lines and no event.
    """
    record = Record()
    for path in map(Path, paths):
        _read(path, record)
    return record


def _read(path: Path, record: Record) -> None:
    before, first = len(record.events), None
    try:
        with path.open("rb") as file:
            for number, line in _lines(file):
                try:
                    record.events.append(parse_line(line))
                except BadLine as err:
                    complaint = Complaint(str(path), number, str(err))
                    first = first or complaint
                    if line.endswith(b"\n") or len(line) > LINE_BYTES_MAX:
                        record.bad += 1
                        record.complaints += [complaint][: _TOLD - len(record.complaints)]
                    else:
                        record.cut += 1
    except OSError as err:
        raise ConfigError(f"{path}: {err.strerror or err}") from err
    if first is not None and len(record.events) == before:
        raise ConfigError(
            f"{path} has no event of a group's history; line {first.line}: {first.why}. Such files "
            "are written by kip848_client.history.recording, kip848 mock --events and "
            "kip848 demo --events."
        )


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The non-blank lines with their numbers; of a line that is too long, its start."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        rest = line
        while len(rest) > LINE_BYTES_MAX and not rest.endswith(b"\n"):
            rest = file.readline(LINE_BYTES_MAX + 1)
        if line.strip():
            yield number, line
