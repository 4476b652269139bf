"""Processors and readers as processes: started, killed, frozen, succeeded by others of the same
name."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

from tests.torture.names import FENCED_EXIT, UNREACHABLE_EXIT, diary_entries
from tests.torture.roles import COPIERS, Role

__all__ = ["Process", "Processes"]

_ROOT: Final = Path(__file__).parents[2]
_NUMBER: Final = re.compile(r"\d+")
_END_S: Final = 60.0
"""How long a process may take to end."""
_TELL_S: Final = 1.0
"""How long it may take to tell where it waits."""
_PAUSE_S: Final = 0.05
_SAID_LINES: Final = 80


class Process:
    """One that runs, or has run."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, stem: Path, *, was_silent: bool
    ) -> None:
        self.name = name
        self._process = process
        self._said = stem.with_suffix(".log")
        self._diary = stem.with_suffix(".diary")
        self._is_wanted = True
        """Whether it should run."""
        self.was_silent = was_silent
        """Then it may have given up by itself. It reached no broker; or it is fenced: a coordinator
        does not write down which epoch it has raised for a time-out, and one that has taken over
        since takes the producer for an old one."""

    @property
    def is_running(self) -> bool:
        return self._process.returncode is None

    @property
    def has_ended_by_itself(self) -> bool:
        """Nobody wanted it to."""
        return self._is_wanted and not self.is_running and not self.has_given_up

    @property
    def has_given_up(self) -> bool:
        """It has ended, is to be started again, and nobody is to blame."""
        return self.was_silent and self.returncode in (FENCED_EXIT, UNREACHABLE_EXIT)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def kill(self) -> None:
        """End it as a crash would."""
        self._is_wanted = self.has_ended_by_itself  # that stays known
        self.signal(signal.SIGKILL)
        await self._process.wait()

    async def end(self) -> int | None:
        """End it gently, as soon as it can be; as ``ended``."""
        await self.has_begun()
        self.signal(signal.SIGTERM)
        return await self.ended()

    async def or_other(self, other: Process) -> Process:
        """The one of two that ends first; this one if none does in time."""
        ends = [asyncio.ensure_future(each._process.wait()) for each in (self, other)]
        await asyncio.wait(ends, timeout=_END_S, return_when=asyncio.FIRST_COMPLETED)
        for each in ends:
            each.cancel()
        return other if self.is_running and not other.is_running else self

    async def has_begun(self) -> None:
        """Return when it has a producer, or has ended."""
        while self.is_running and "started" not in self._noted():  # noqa: ASYNC110 - it only writes
            await asyncio.sleep(_PAUSE_S)

    def _noted(self) -> set[str]:
        return {entry["what"] for entry in diary_entries(self._diary)}

    async def ended(self) -> int | None:
        """Its exit code, once it has ended; one that does not in time is killed: ``None``."""
        self._is_wanted = False
        try:
            async with asyncio.timeout(_END_S):
                return await self._process.wait()
        except TimeoutError:
            self.signal(signal.SIGUSR1)
            await asyncio.sleep(_TELL_S)
            await self.kill()
            return None

    def said(self) -> str:
        """The end of what it has said of errors."""
        return "\n".join(self._said.read_text(errors="replace").splitlines()[-_SAID_LINES:])


class Processes:
    """All that were ever started. A folder has their diaries."""

    def __init__(
        self,
        roles: Mapping[str, Role],
        bootstrap: str,
        seed: int,
        folder: Path,
        *,
        is_network_cut: bool,
    ) -> None:
        self._roles = dict(roles)
        self._bootstrap = bootstrap
        self._is_network_cut = is_network_cut
        self._seeds = itertools.count(seed * 1_000)
        self._folder = folder
        self._started: list[Process] = []
        self._numbers = itertools.count(1)
        self.names = tuple(roles)
        self.living: dict[str, Process] = {}
        """The newest of each name."""
        self._in_hand: set[str] = set()

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        roles: Mapping[str, Role],
        bootstrap: str,
        seed: int,
        folder: Path,
        *,
        is_network_cut: bool = False,
    ) -> AsyncGenerator[Processes]:
        """One process of each name, in its role; none is left behind. Any of them may seem silent
        to a coordinator where the network is cut."""
        found = cls(roles, bootstrap, seed, folder, is_network_cut=is_network_cut)
        try:
            for name in found.names:
                await found.start(name)
            yield found
        finally:
            for process in found._started:
                await process.kill()

    def names_of(self, roles: Collection[Role]) -> list[str]:
        """Those in one of these roles."""
        return [name for name, role in self._roles.items() if role in roles]

    @property
    def copiers(self) -> list[str]:
        """Those that copy, and have a transactional id."""
        return self.names_of(COPIERS)

    async def start(self, name: str) -> Process:
        """Another one of this name."""
        stem = self._folder / f"{name}-{next(self._numbers)}"
        with stem.with_suffix(".log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-m", "tests.torture.processor", self._roles[name], self._bootstrap, name),
                *(str(next(self._seeds)), str(stem.with_suffix(".diary"))),
                cwd=_ROOT,
                stdin=asyncio.subprocess.PIPE,
                stderr=log,
            )
        self.living[name] = Process(name, process, stem, was_silent=self._is_network_cut)
        self._started.append(self.living[name])
        return self.living[name]

    @contextmanager
    def in_hand(self, *names: str) -> Generator[None]:
        """Who has them in hand starts them, and nobody else, for the length of a block."""
        self._in_hand.update(names)
        try:
            yield
        finally:
            self._in_hand.difference_update(names)

    async def tell(self) -> None:
        """Make all that run tell where they wait and what they know; returns when they have."""
        for process in self.living.values():
            process.signal(signal.SIGUSR1)
        await asyncio.sleep(_TELL_S)

    async def supervise(self) -> None:
        """Start those again that have given up, until cancelled."""
        while True:
            for name, process in tuple(self.living.items()):
                if process.has_given_up and name not in self._in_hand:
                    await self.start(name)
            await asyncio.sleep(_PAUSE_S)

    def troubles(self) -> list[str]:
        """Those that ended though nobody wanted that."""
        return [
            f"{each.name} ended by itself, with {each.returncode}"
            f"{' (fenced)' if each.returncode == FENCED_EXIT else ''}:\n{each.said()}"
            for each in self._started
            if each.has_ended_by_itself
        ]

    def counts(self) -> Counter[str]:
        """What is in the diaries: how often what happened, and how many records it happened to."""
        found: Counter[str] = Counter()
        for entry in self.entries():
            found[entry["what"]] += 1
            if "records" in entry:
                found[f"records {entry['what']}"] += entry["records"]
        return found

    def errors(self) -> Counter[str]:
        """The errors in the diaries, whatever numbers they name."""
        return Counter(
            f"{entry['what']}: {_NUMBER.sub('N', entry['error'])}"
            for entry in self.entries()
            if "error" in entry
        )

    def entries(self) -> Iterator[dict[str, Any]]:
        """All that is in the diaries."""
        for path in self._folder.glob("*.diary"):
            yield from diary_entries(path)
