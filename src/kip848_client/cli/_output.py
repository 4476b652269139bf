"""The standard output of a command: closed, full, a pipe that nobody reads, a terminal without the
characters of a group's name. None of that is a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

__all__ = ["Unwritable", "flush", "give_up", "prepare", "put"]


class Unwritable(Exception):
    """The standard output takes nothing more; its cause says why."""


def prepare() -> None:
    """Let every text be written: what the terminal's encoding lacks is escaped, and what is said to
    a closed stream is lost."""
    if _is_closed(sys.stdout):
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - while we run
    if _is_closed(sys.stderr):
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - while we run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _is_closed(stream: object) -> bool:
    return stream is None  # which Python makes of "kip848 ... >&-"


def put(text: str) -> None:
    """Print as it is. Raises ``Unwritable``."""
    try:
        sys.stdout.write(text)
    except OSError as err:
        raise Unwritable from err


def flush() -> None:
    """Have it written now. Raises ``Unwritable``."""
    try:
        sys.stdout.flush()
    except OSError as err:
        raise Unwritable from err


def give_up(why: BaseException | None) -> int:
    """Write nothing more, and say why, unless whoever reads has enough ("| head"); the exit code.
    Python would complain of the rest once more at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not isinstance(why, BrokenPipeError):
        sys.stderr.write(f"kip848: the standard output cannot be written to: {why}\n")
    return 1
