"""How scenarios write things: partitions, durations, command lines.

``foo[0-2,5]`` is partitions 0, 1, 2 and 5 of foo; several topics stand in parentheses,
``(foo[0-2] bar[1])``; ``()`` is an empty list and ``none`` a null field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = [
    "Arguments",
    "NotationError",
    "duration_ms",
    "partitions_text",
    "read_numbers",
    "read_partitions",
    "words",
]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<key>[A-Za-z][\w.-]*)=)?"
    r"(?:\"(?P<quoted>[^\"]*)\"|\((?P<list>[^()]*)\)|(?P<bare>[^\s\"()]\S*))"
)
_PARTITIONS: Final = re.compile(r"(?P<topic>[\w.-]+)\[(?P<list>[\d,-]*)\](?:=(?P<value>-?\d+))?")
_DURATION: Final = re.compile(r"(\d+)(ms|s|min|h|d)")
_UNIT_MS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class NotationError(ValueError):
    """Text that is not in the notation."""


@dataclass(slots=True)
class Arguments:
    """A command line, split. Handlers take what they know; what is left is a mistake."""

    command: str
    positional: list[str] = field(default_factory=list[str])
    options: dict[str, str | list[str] | None] = field(
        default_factory=dict[str, "str | list[str] | None"]
    )

    @classmethod
    def parse(cls, line: str) -> Arguments:
        """Split ``command word key=value key=(a b) key="..."``. Raises ``NotationError``."""
        name, _, rest = line.strip().partition(" ")
        found = cls(name)
        rest, position = rest.rstrip(), 0
        while position < len(rest):
            token = _TOKEN.match(rest, position)
            if token is None:
                raise NotationError(f"cannot read {rest[position:]!r}")
            position = token.end()
            found._add(token)
        return found

    def _add(self, token: re.Match[str]) -> None:
        value: str | list[str] | None
        if token["quoted"] is not None:
            value = token["quoted"]
        elif token["list"] is not None:
            value = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', token["list"])]
        else:
            value = None if token["bare"] == "none" else token["bare"]
        if token["key"] is not None:
            self.options[token["key"]] = value
        elif isinstance(value, str):
            self.positional.append(value)
        else:
            raise NotationError(f"{token[0].strip()!r} needs a name: NAME={token[0].strip()}")

    def word(self, what: str) -> str:
        """The next positional word."""
        if not self.positional:
            raise NotationError(f"{self.command} needs {what}")
        return self.positional.pop(0)

    def flag(self, name: str) -> bool:
        """Whether a bare word is there."""
        if name not in self.positional:
            return False
        self.positional.remove(name)
        return True

    def text(self, name: str, default: str | None = None) -> str | None:
        """A text option; ``none`` is null."""
        value = self.options.pop(name, default)
        if isinstance(value, list):
            raise NotationError(f"{name} takes one value")
        return value

    def number(self, name: str, default: int) -> int:
        """A whole number."""
        value = self.text(name, str(default))
        try:
            return int(value or "")
        except ValueError as err:
            raise NotationError(f"{name} takes a number, not {value!r}") from err

    def duration(self, name: str, default: str | None) -> int:
        """Milliseconds; ``none`` is Kafka's -1."""
        value = self.text(name, default)
        return -1 if value is None else duration_ms(value)

    def words(self, name: str, default: list[str] | None = None) -> tuple[str, ...] | None:
        """A list option: ``key=a`` or ``key=(a b)``; ``none`` is null."""
        value = self.options.pop(name, default)
        if isinstance(value, str):
            return (value,)
        return None if value is None else tuple(value)

    def done(self) -> None:
        """Raise ``NotationError`` when something was not understood."""
        left = [*self.positional, *self.options]
        if left:
            raise NotationError(f"{self.command} does not take {', '.join(left)}")


def words(names: Iterable[str]) -> str:
    """A list as a reader expects it: ``a, b``; ``nothing`` when it is empty."""
    return ", ".join(names) or "nothing"


def duration_ms(text: str) -> int:
    """``5s``, ``900ms``, ``10min``, ``7d`` in milliseconds. Raises ``NotationError``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise NotationError(f"not a duration: {text!r}")
    return int(match[1]) * _UNIT_MS[match[2]]


def read_partitions(text: str) -> tuple[str, tuple[int, ...], int | None]:
    """``foo[0-2]=7`` as topic, partitions and number. Raises ``NotationError``."""
    match = _PARTITIONS.fullmatch(text)
    if match is None:
        raise NotationError(f"not partitions: {text!r}")
    numbers = read_numbers(match["list"])
    return match["topic"], numbers, None if match["value"] is None else int(match["value"])


def read_numbers(text: str) -> tuple[int, ...]:
    """``0-2,5`` as numbers."""
    numbers: list[int] = []
    for piece in filter(None, text.split(",")):
        low, _, high = piece.partition("-")
        numbers += range(int(low), int(high or low) + 1)
    return tuple(numbers)


def partitions_text(assignment: Mapping[str, Iterable[int]]) -> str:
    """``foo[0-2] bar[1,4]``, topics in alphabetical order; ``nothing`` when there are none. What is
    numbered -1 is a connector itself, ``c``."""
    pieces = [f"{topic}[{_ranges(sorted(assignment[topic]))}]" for topic in sorted(assignment)]
    return " ".join(pieces) or "nothing"


def _ranges(numbers: list[int]) -> str:
    """Runs of three or more as ``a-b``: ``0,1`` reads better than ``0-1``."""
    pieces = ["c" for number in numbers if number < 0]
    runs: list[list[int]] = []
    for number in numbers[len(pieces) :]:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    for run in runs:
        pieces += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(each) for each in run]
    return ",".join(pieces)
