"""One configuration setting, and how Kafka reads its value.

The tables of settings (``broker_settings``, ``topic_settings``) are text, one setting a line::

    name TYPE default check since kind [broker-setting]

``null`` is no value and ``''`` the empty one. ``check`` is ``-``, a range ``low..high`` with either
end left out, or the values allowed as ``a|b``. ``since`` is the first release line that knows the
setting. The messages of refused values are Kafka's own, so that a client shows its user what a real
broker would have shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

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

_BITS: Final = {"SHORT": 15, "INT": 31, "LONG": 63}


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting's name, type, default (as text), allowed values and first release line.

    ``kind`` is ``live`` (can be altered at runtime), ``fixed`` or ``internal`` (accepted, not
    shown). ``broker_name`` is, for a topic's or group's setting, the broker setting that gives its
    default.
    """

    name: str
    type: str
    default: str | None
    check: str
    since: str
    kind: str
    broker_name: str | None = None

    def parse(self, text: str | None) -> SettingValue:
        """The typed value of a text. Raises ``ValueError`` with Kafka's words."""
        if text is None:
            return None
        value = self._typed(text.strip() if self.type != "PASSWORD" else text)
        for part in value if isinstance(value, tuple) else (value,):
            problem = self._problem(part)
            if problem:
                raise ValueError(f"Invalid value {part} for configuration {self.name}: {problem}")
        return value

    def _typed(self, text: str) -> SettingValue:
        if self.type == "BOOLEAN":
            if text.lower() not in ("true", "false"):
                raise ValueError(
                    f"Invalid value {text} for configuration {self.name}: "
                    "Expected value to be either true or false"
                )
            return text.lower() == "true"
        if self.type == "LIST":
            return tuple(part.strip() for part in text.split(",")) if text else ()
        bits = _BITS.get(self.type)
        if bits is None and self.type != "DOUBLE":
            return text
        try:
            number = float(text) if bits is None else int(text)
        except ValueError:
            number = None
        # Java's parsers refuse what Python tolerates ("1_000") and whatever overflows
        if number is None or "_" in text or (bits and not -(1 << bits) <= number < 1 << bits):
            raise ValueError(
                f"Invalid value {text} for configuration {self.name}: "
                f"Not a number of type {self.type}"
            )
        return number

    def _problem(self, value: int | float | str | None) -> str:
        if self.check == "-" or value is None:
            return ""
        if ".." in self.check and not isinstance(value, str):
            low, high = self.check.split("..")
            if self.name == "compression.gzip.level" and value == 0:
                return "Value must be between 1 and 9 or equal to -1"
            if low and value < float(low):
                return f"Value must be at least {low}"
            if high and value > float(high):
                return f"Value must be no more than {high}"
            return ""
        allowed = self.check.split("|")
        any_case = all(word == word.lower() for word in allowed) and self.type == "STRING"
        found = str(value).lower() if any_case else str(value)
        return "" if found in allowed else f"String must be one of: {', '.join(allowed)}"


def read_table(text: str) -> dict[str, Setting]:
    """The settings of a table, by name."""
    settings: dict[str, Setting] = {}
    for line in text.strip().splitlines():
        name, kind_of_value, default, check, since, kind, *broker_name = line.split()
        settings[name] = Setting(
            name,
            kind_of_value,
            None if default == "null" else default.replace("''", ""),
            check,
            since,
            kind,
            broker_name[0] if broker_name else None,
        )
    return settings
