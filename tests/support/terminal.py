"""A terminal: a pseudo-terminal whose output an emulator draws, as big as the test likes, and of
another size whenever the test likes."""

from __future__ import annotations

import copy
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TextIO

import pyte

__all__ = ["Terminal"]

_ALTERNATE: Final = 1049
_LAUNCH: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)
"""Only the leader of a session is told that its terminal has another size."""


class _Emulator(pyte.Screen):
    """pyte's screen, and the alternate screen that it does not know."""

    def __init__(self, columns: int, rows: int, *, has_alternate: bool) -> None:
        super().__init__(columns, rows)
        self._has_alternate = has_alternate
        self._before: tuple[Any, Any] | None = None
        self.is_alternate = False

    def set_mode(self, *modes: int, **options: Any) -> None:
        if _ALTERNATE in modes and options.get("private"):
            self.is_alternate = True
            if self._has_alternate:
                self._before = copy.deepcopy(self.buffer), copy.copy(self.cursor)
                self.erase_in_display(2)
        super().set_mode(*modes, **options)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        if _ALTERNATE in modes and options.get("private"):
            self.is_alternate = False
            if self._before is not None:
                self.buffer, self.cursor = self._before
                self.dirty.update(range(self.lines))
        super().reset_mode(*modes, **options)


class Terminal:
    """Use it as ``with``. ``out`` is what a program in this process writes to."""

    def __init__(self, columns: int, rows: int, *, has_alternate: bool = True) -> None:
        self._screen = _Emulator(columns, rows, has_alternate=has_alternate)
        self._stream = pyte.ByteStream(self._screen)
        self._ours, self._theirs = pty.openpty()
        self.out: TextIO = os.fdopen(self._theirs, "w", encoding="utf-8")
        self._raw = b""
        self.resize(columns, rows)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.out.close()
        os.close(self._ours)

    def resize(self, columns: int, rows: int) -> None:
        """Give it another size. What does not fit is cut, as xterm does it."""
        self._look()
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def rows(self) -> list[str]:
        """What is to be seen, without blanks at the ends of lines and without empty last lines."""
        self._look()
        rows = [row.rstrip() for row in self._screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    @property
    def raw(self) -> str:
        """All that was written."""
        self._look()
        return self._raw.decode()

    @property
    def is_alternate(self) -> bool:
        """Whether the alternate screen is shown."""
        self._look()
        return self._screen.is_alternate

    @contextmanager
    def running(self, *words: str, **env: str) -> Generator[subprocess.Popen[bytes]]:
        """``python WORDS`` as the program of this terminal; killed at the end."""
        process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *words],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
            env=os.environ | {"TERM": "xterm-256color"} | env,
            cwd=Path(__file__).parents[2],
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def wait_for(self, text: str, within_s: float = 60) -> list[str]:
        """What is to be seen as soon as this text is."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            rows = self.rows()
            if any(text in row for row in rows):
                return rows
            select.select([self._ours], [], [], 0.1)
        raise AssertionError(f"{text!r} is not on the terminal:\n" + "\n".join(self.rows()))

    def wait_for_change(self, within_s: float = 60) -> list[str]:
        """What is to be seen when something was written, and then nothing for a moment."""
        select.select([self._ours], [], [], within_s)
        written = -1
        while written != len(self._raw):
            written = len(self._raw)
            select.select([self._ours], [], [], 0.2)
            self._look()
        return self.rows()

    def wait(self, process: subprocess.Popen[bytes], within_s: float = 60) -> int:
        """The exit code of a program that ends by itself."""
        until = time.monotonic() + within_s
        while process.poll() is None:
            assert time.monotonic() < until, "\n".join(self.rows())
            select.select([self._ours], [], [], 0.05)
            self._look()
        return process.returncode

    def _look(self) -> None:
        if not self.out.closed:
            self.out.flush()
        while select.select([self._ours], [], [], 0)[0]:
            chunk = os.read(self._ours, 65536)
            self._raw += chunk
            self._stream.feed(chunk)
