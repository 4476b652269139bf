"""Scenario files: reading them, and writing them back with new outputs.

A file is a head and blocks. The head is the comment that says what the file shows, followed by
settings, one a line::

    profiles: 4.3 4.4                        (default: all)
    broker: group.consumer.max.size=1        (broker settings; may be repeated)
    real kafka: no, <reason>                 (or "slow, <reason>"; default: played there too)

A block is a command, ``----`` and the exact output, ended by an empty line. Where profiles answer
differently the output has sections: ``---- 4.0-4.1`` and ``---- 4.2+``. Where they differ only
because a new group starts at epoch 1 up to 4.2 and at epoch 2 from 4.3 on, a number is written as
a pair, ``epoch 2|3``: the first for 4.0 to 4.2, the second for 4.3 and later.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mock_coordinator.core.profiles import PROFILES as KNOWN

__all__ = ["PROFILES", "Block", "Script", "ScriptError", "expand", "merge"]

PROFILES: Final = tuple(KNOWN)
_LATE: Final = frozenset(name for name, profile in KNOWN.items() if profile.first_group_epoch == 1)
"""Profiles in which a new group's first epoch is one higher (KIP-848 as shipped from 4.3 on)."""

_RULE: Final = re.compile(r"----(?:\s+(.+))?")
_PAIR: Final = re.compile(r"(?<![\w|])(\d+)\|(\d+)(?![\w|])")
_NUMBER: Final = re.compile(r"(?<![\w\[,-])\d+(?![\w\],-])|(?<![\w\[,-])\d+(?=,(?:\s|$))")
_SETTINGS: Final = ("profiles", "broker", "real kafka")


class ScriptError(AssertionError):
    """A scenario file that cannot be read or played; the message names file and line."""


@dataclass(slots=True)
class Block:
    """One command and what it must print, per section of profiles."""

    line: int
    command: str
    sections: list[tuple[tuple[str, ...], list[str]]]

    def expected(self, profile: str) -> list[str] | None:
        """The lines for one profile; ``None`` when no section is for it."""
        for profiles, lines in self.sections:
            if profile in profiles:
                return [expand(line, profile) for line in lines]
        return None


@dataclass(slots=True)
class Script:
    """A scenario file. ``parts`` keeps comments and blocks in order, so that it can be written."""

    path: Path
    profiles: tuple[str, ...] = PROFILES
    broker: dict[str, str] = field(default_factory=dict[str, str])
    real_kafka: str = "yes"
    reason: str = ""
    parts: list[str | Block] = field(default_factory=list[str | Block])

    @property
    def name(self) -> str:
        """The number and title, from the file's name."""
        return self.path.stem

    @property
    def blocks(self) -> list[Block]:
        return [part for part in self.parts if isinstance(part, Block)]

    @classmethod
    def read(cls, path: Path) -> Script:
        """Parse a file. Raises ``ScriptError``."""
        return _Reader(path).read()

    def text(self, outputs: Mapping[int, Mapping[str, Sequence[str]]]) -> str:
        """The file with other outputs: block's line -> profile -> printed lines."""
        written: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
                continue
            written.append(part.command)
            printed = outputs[part.line]
            for profiles, lines in merge({each: printed[each] for each in self.profiles}):
                everyone = profiles == self.profiles
                written.append("----" if everyone else f"---- {_label(profiles)}")
                written.extend(lines)
        return "\n".join(written).rstrip("\n") + "\n"


def expand(text: str, profile: str) -> str:
    """Resolve the pairs ``early|late`` of a line for one profile."""
    return _PAIR.sub(lambda match: match[2] if profile in _LATE else match[1], text)


def merge(printed: Mapping[str, Sequence[str]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Fold the outputs of the profiles into as few sections as possible.

    Neighbouring profiles share a section when their outputs are equal, or when early and late
    ones differ only in numbers that are one higher in the late ones.
    """
    sections: list[tuple[tuple[str, ...], dict[bool, list[str]]]] = []
    for profile, lines in printed.items():
        late = profile in _LATE
        if sections:
            profiles, sides = sections[-1]
            trial = {**sides, late: sides.get(late, list(lines))}
            if trial[late] == list(lines) and _paired(trial) is not None:
                sections[-1] = ((*profiles, profile), trial)
                continue
        sections.append(((profile,), {late: list(lines)}))
    return [(profiles, _paired(sides) or []) for profiles, sides in sections]


def _paired(sides: Mapping[bool, list[str]]) -> list[str] | None:
    """One text for an early and a late output; ``None`` when no pairs can express both."""
    if len(sides) == 1:
        return next(iter(sides.values()))
    early, late = sides[False], sides[True]
    if early == late:
        return early
    if len(early) != len(late):
        return None
    lines = [_pair_line(first, second) for first, second in zip(early, late, strict=True)]
    known = [line for line in lines if line is not None]
    return known if len(known) == len(lines) else None


def _pair_line(early: str, late: str) -> str | None:
    first, second = list(_NUMBER.finditer(early)), list(_NUMBER.finditer(late))
    if len(first) != len(second):
        return None
    written, position = "", 0
    for one, other in zip(first, second, strict=True):
        written += early[position : one.start()]
        low, high = int(one[0]), int(other[0])
        if high not in (low, low + 1):
            return None
        written += one[0] if low == high else f"{low}|{high}"
        position = one.end()
    written += early[position:]
    # Only a text from which both come back is right, whatever the patterns let through.
    same = expand(written, PROFILES[0]) == early and expand(written, PROFILES[-1]) == late
    return written if same else None


def _label(profiles: Sequence[str]) -> str:
    if len(profiles) == 1:
        return profiles[0] if profiles[0] != PROFILES[-1] else f"{profiles[0]}+"
    if profiles[-1] == PROFILES[-1]:
        return f"{profiles[0]}+"
    return f"{profiles[0]}-{profiles[-1]}"


def _profiles(text: str) -> tuple[str, ...]:
    """Read ``4.0 4.1``, ``4.0-4.2`` or ``4.2+``. Raises ``ValueError``."""
    found: list[str] = []
    for word in text.split():
        low, _, high = word.removesuffix("+").partition("-")
        last = PROFILES[-1] if word.endswith("+") else high or low
        start, end = PROFILES.index(low), PROFILES.index(last)
        found += PROFILES[start : end + 1]
    if sorted(set(found), key=PROFILES.index) != found or not found:
        raise ValueError(text)
    return tuple(found)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = path.read_text(encoding="utf-8").splitlines()
        self._next = 0
        self._script = Script(path)

    def read(self) -> Script:
        if not self._lines or not self._lines[0].startswith("#"):
            raise self._error(1, "a scenario opens with a comment: what it shows, and why")
        while self._next < len(self._lines):
            line = self._lines[self._next]
            name, colon, value = line.partition(":")
            if not line.strip() or line.startswith("#"):
                self._script.parts.append(line)
                self._next += 1
            elif colon and name in _SETTINGS:
                self._setting(name, value.strip())
                self._script.parts.append(line)
                self._next += 1
            else:
                self._script.parts.append(self._block())
        return self._script

    def _setting(self, name: str, value: str) -> None:
        number = self._next + 1
        if self._script.blocks:
            raise self._error(number, f"{name!r} belongs before the first command")
        if name == "profiles":
            try:
                self._script.profiles = _profiles(value)
            except ValueError as err:
                raise self._error(number, f"not profiles: {value!r}") from err
        elif name == "broker":
            key, equals, setting = value.partition("=")
            if not equals:
                raise self._error(number, "broker: KEY=VALUE")
            self._script.broker[key] = setting
        else:
            kind, comma, reason = value.partition(",")
            if kind not in ("no", "slow") or not comma:
                raise self._error(number, "real kafka: no, REASON or real kafka: slow, REASON")
            self._script.real_kafka, self._script.reason = kind, reason.strip()

    def _block(self) -> Block:
        number = self._next + 1
        command = self._lines[self._next]
        self._next += 1
        sections: list[tuple[tuple[str, ...], list[str]]] = []
        while self._next < len(self._lines) and self._lines[self._next].strip():
            line = self._lines[self._next]
            rule = _RULE.fullmatch(line)
            if rule is not None:
                sections.append((self._section(rule[1]), []))
            elif sections:
                sections[-1][1].append(line)
            else:
                raise self._error(self._next + 1, f"---- expected after the command, not {line!r}")
            self._next += 1
        if not sections:
            raise self._error(number, f"no ---- after {command!r}")
        named = [profile for profiles, _ in sections for profile in profiles]
        if sorted(named) != sorted(set(named)):
            raise self._error(number, "a profile has two sections")
        return Block(number, command, sections)

    def _section(self, text: str | None) -> tuple[str, ...]:
        if text is None:
            return self._script.profiles
        try:
            return _profiles(text)
        except ValueError as err:
            raise self._error(self._next + 1, f"not profiles: {text!r}") from err

    def _error(self, line: int, message: str) -> ScriptError:
        return ScriptError(f"{self._path.name}:{line}: {message}")
