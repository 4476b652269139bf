"""One configuration setting, and how Kafka parses its value.

The tables of settings (``settings.tables``) are text, one setting per line::

    name TYPE default check since kind [broker-setting]

``null`` means no value and ``''`` the empty one. ``check`` is ``-``, a range ``low..high`` with
either end optional, the allowed values as ``a|b``, with ``~`` before them if they are
case-insensitive, or ``replicas`` for a list of ``partition:broker``. ``since`` is the first release
line for which the row holds. A setting whose default or check was changed has one row per change,
the oldest first. The messages of refused values are Kafka's own, so that a client shows its user
what a real broker would have shown.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from mock_coordinator.core.release_line import ReleaseLine

__all__ = ["CONFIG_TYPES", "Setting", "SettingValue", "read_table"]

SettingValue = int | bool | float | str | tuple[str, ...] | None

CONFIG_TYPES: Final = {
    "UNKNOWN": 0,
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}
"""DescribeConfigs' number for each type."""

_ANY_CASE: Final = "~"
_REPLICAS: Final = "replicas"
_REPLICA: Final = re.compile("([0-9]+:[0-9]+)?")
_BITS: Final = {"SHORT": 15, "INT": 31, "LONG": 63}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's name, type, default (as text), allowed values, and since when they hold.

    ``kind`` is ``live`` (can be altered at runtime), ``fixed``, ``internal`` (accepted, not
    shown) or ``absent`` (missing in this line, although the newest patch release of an older line
    has it). ``broker_name`` is, for a topic's or group's setting, the broker setting that gives its
    default.
    """

    name: str
    type: str
    default: str | None
    check: str
    since: ReleaseLine
    kind: str
    broker_name: str | None = None
    distinct: bool = False
    """For a list: duplicates count once, and empty elements are refused."""
    before: Setting | None = None
    """The same setting in lines older than ``since``, if they have it."""

    def at(self, line: ReleaseLine) -> Setting | None:
        """Return the setting in a release line; ``None`` if the line does not have it."""
        if line >= self.since:
            return None if self.kind == "absent" else self
        return None if self.before is None else self.before.at(line)

    def parse(self, text: str | None) -> SettingValue:
        """Return the typed value of a text. Raises ``ValueError`` with Kafka's message."""
        if text is None:
            return None
        value = self._typed(text)
        if isinstance(value, tuple) and self.check == _REPLICAS:
            self._check_replicas(value)
            return value
        for part in value if isinstance(value, tuple) else (value,):
            if self.distinct and part == "":
                raise ValueError(f"Configuration '{self.name}' values must not be empty.")
            problem = self._problem(part)
            if problem:
                shown = _java_double(part) if isinstance(part, float) else part
                raise ValueError(f"Invalid value {shown} for configuration {self.name}: {problem}")
        return value

    def canonical(self, text: str | None) -> str | None:
        """Return a valid text in the broker's form: its parsed value, formatted again."""
        value = self.parse(text)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return _java_double(value)
        return None if value is None else str(value)

    def _typed(self, given: str) -> SettingValue:
        text = given.strip() if self.type != "PASSWORD" else given
        if self.type == "BOOLEAN":
            if text.lower() not in ("true", "false"):
                raise ValueError(
                    f"Invalid value {given} for configuration {self.name}: "
                    "Expected value to be either true or false"
                )
            return text.lower() == "true"
        if self.type == "LIST":
            parts = [part.strip() for part in text.split(",")] if text else []
            return tuple(dict.fromkeys(parts) if self.distinct else parts)
        bits = _BITS.get(self.type)
        if bits is None and self.type != "DOUBLE":
            return text
        try:
            number = float(text) if bits is None else int(text)
        except ValueError:
            number = None
        if isinstance(number, float) and not math.isfinite(number) and text != _java_double(number):
            number = None
        # Java's parsers refuse what Python tolerates ("1_000") and whatever overflows
        if number is None or "_" in text or (bits and not -(1 << bits) <= number < 1 << bits):
            raise ValueError(
                f"Invalid value {given} for configuration {self.name}: "
                f"Not a number of type {self.type}"
            )
        return number

    def _check_replicas(self, value: tuple[str, ...]) -> None:
        if "".join(value) == "*" or all(_REPLICA.fullmatch(part) for part in value):
            return
        raise ValueError(
            f"Invalid value [{', '.join(value)}] for configuration {self.name}: {self.name} must "
            "be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )

    def _problem(self, value: int | float | str | None) -> str:
        if self.check == "-" or value is None:
            return ""
        if ".." in self.check and not isinstance(value, str):
            low, high = self.check.split("..")
            if self.name == "compression.gzip.level":
                fine = value == -1 or 1 <= value <= float(high)
                return "" if fine else "Value must be between 1 and 9 or equal to -1"
            if low and value < float(low):
                return f"Value must be at least {low}"
            if high and value > float(high):
                return f"Value must be no more than {high}"
            return ""
        allowed = self.check.removeprefix(_ANY_CASE).split("|")
        if self.check.startswith(_ANY_CASE):
            found, how = str(value).upper(), " (case insensitive)"
        else:
            found, how = str(value), ""
        return "" if found in allowed else f"String must be one of{how}: {', '.join(allowed)}"


def _java_double(value: float) -> str:
    """A number as Java writes it: ``0.5``, ``9.2E18``."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value!r}".partition("e")
    if not exponent:
        whole, _, rest = mantissa.lstrip("-").partition(".")
        digits = f"{whole}{rest}".strip("0")
        power = len(whole) - 1 if whole != "0" else len(rest.lstrip("0")) - len(rest) - 1
        mantissa = f"{'-' if value < 0 else ''}{digits[0]}.{digits[1:]}"
        exponent = str(power)
    whole, _, rest = mantissa.partition(".")
    return f"{whole}.{rest or '0'}E{int(exponent)}"


def read_table(text: str) -> dict[str, Setting]:
    """The settings of a table as the newest line has them, by name."""
    settings: dict[str, Setting] = {}
    for line in text.strip().splitlines():
        name, kind_of_value, default, check, since, kind, *broker_name = line.split()
        settings[name] = Setting(
            name,
            kind_of_value,
            None if default == "null" else default.replace("''", ""),
            check,
            ReleaseLine.of(since),
            kind,
            broker_name[0] if broker_name else None,
            before=settings.get(name),
        )
    return settings
