"""Prints the output of a command, line by line. Only the live screens (``_live``) and the
messages of a demo's processes (``_demo._process``) bypass it.

Names are untrusted, so line breaks and control characters in them are escaped. Standard output may
be closed, full, a broken pipe, or a terminal that lacks the characters of a name; none of these
causes a traceback.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Any, TextIO

from kip848_client.cli.core._cells import folded, hanging
from kip848_client.cli.core._tables import Table
from kip848_client.core.visible import visible

__all__ = [
    "Unwritable",
    "VisibleFormatter",
    "flush",
    "give_up",
    "prepare",
    "put",
    "put_error",
    "put_hanging",
    "put_prose",
    "put_table",
    "size_of",
]


class Unwritable(Exception):
    """Standard output cannot be written; ``__cause__`` has the reason."""


class VisibleFormatter(logging.Formatter):
    """Keeps each log message on one line; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - its name in logging
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - its name in logging
        return "\n".join(map(visible, super().formatException(ei).split("\n")))


def prepare() -> None:
    """Make every text writable: characters that the terminal cannot encode are escaped, and output
    to a closed stream is dropped."""
    if _is_closed(sys.stdout):
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - while we run
    if _is_closed(sys.stderr):
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - while we run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(VisibleFormatter())


def _is_closed(stream: object) -> bool:
    return stream is None  # as after "kip848 ... >&-"


def put(*lines: str, keep: str = "") -> None:
    """Print lines, escaped except for the characters in ``keep``. Raises ``Unwritable``."""
    try:
        sys.stdout.write("".join(f"{visible(line, keep=keep)}\n" for line in lines))
    except OSError as err:
        raise Unwritable from err


def put_prose(*lines: str) -> None:
    """Print sentences, wrapped between words on a terminal. Raises ``Unwritable``."""
    size = size_of(sys.stdout)
    for line in lines:
        put(*([line] if size is None else folded(visible(line), size.columns)))


def put_hanging(line: str) -> None:
    """Print a line that starts with its time, wrapped after the time on a terminal. Raises
    ``Unwritable``."""
    size = size_of(sys.stdout)
    put(*([line] if size is None else hanging(visible(line), size.columns)))


def put_table(table: Table) -> None:
    """Print a table: fitted to a terminal, otherwise in the form of Kafka's tools. Raises
    ``Unwritable``."""
    size = size_of(sys.stdout)
    put(*(table.plain() if size is None else table.fitted(size.columns)))


def put_error(*lines: str) -> None:
    """Print lines to standard error."""
    sys.stderr.write("".join(f"{visible(line)}\n" for line in lines))


def size_of(stream: TextIO) -> os.terminal_size | None:
    """The terminal's current size; ``None`` if this is not a terminal."""
    if not stream.isatty():
        return None
    with contextlib.suppress(OSError, ValueError):
        size = os.get_terminal_size(stream.fileno())
        if size.columns > 0 and size.lines > 0:
            return size
    return shutil.get_terminal_size()  # uses COLUMNS and LINES, and has a default


def flush() -> None:
    """Flush standard output. Raises ``Unwritable``."""
    try:
        sys.stdout.flush()
    except OSError as err:
        raise Unwritable from err


def give_up(why: BaseException | None) -> int:
    """Stop writing, and report the reason, unless the reader closed the pipe ("| head"). Returns
    the exit code. Without this, Python would report the unwritten rest again at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(why, BrokenPipeError):
        put_error(f"kip848: the standard output cannot be written to: {why}")
    return 1
