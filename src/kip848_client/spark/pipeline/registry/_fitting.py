"""How a decoded value becomes one of its column.

Each value is checked, so that one that does not fit is found in its own record, and not in the
column that Arrow makes of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from kip848_client.spark.pipeline.registry.core._kinds import Decimals, Kind, List, Map, Struct

__all__ = ["Unfit", "fitting"]

_RANGES: Final = {"int": 31, "time_ms": 31, "long": 63, "time_us": 63}
_US: Final = {"timestamp_ms": 1_000, "timestamp_us": 1}
_LOCAL_US: Final = {"local_timestamp_ms": 1_000, "local_timestamp_us": 1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_1: Final = date(1970, 1, 1)


class Unfit(ValueError):
    """The value does not have the type of its column."""


Fit = Callable[[Any], Any]


def fitting(kind: Kind) -> Fit:
    """A function from a decoded value to what Arrow accepts for the type. It raises ``Unfit``."""
    fit = _fit_of(kind)
    return lambda value: None if value is None else fit(value)


def _fit_of(kind: Kind) -> Fit:
    match kind:
        case Decimals():
            return lambda value: _decimal(value, kind)
        case List(of):
            item = fitting(of)
            return lambda value: [item(each) for each in _sequence(value)]
        case Map(of, key):
            first, second = fitting(key), fitting(of)
            return lambda value: [(first(a), second(b)) for a, b in _mapping(value).items()]
        case Struct(fields):
            fits = [(name, fitting(each)) for name, each in fields]
            return lambda value: _struct(_mapping(value), fits)
        case str():
            return _leaf(kind)


def _leaf(kind: str) -> Fit:
    if kind in _RANGES:
        limit = 1 << _RANGES[kind]
        return lambda value: _integer(value, limit)
    if kind in _US:
        return lambda value: _timestamp(value, _US[kind])
    if kind in _LOCAL_US:
        return lambda value: _timestamp(value, _LOCAL_US[kind]).replace(tzinfo=None)
    return _PLAIN[kind]


def _struct(value: Mapping[str, Any], fits: Sequence[tuple[str, Fit]]) -> dict[str, Any]:
    return {name: fit(value.get(name)) for name, fit in fits}


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _unfit(value, "a structure")
    return value


def _sequence(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise _unfit(value, "an array")
    return value


def _integer(value: Any, limit: int) -> int:
    if isinstance(value, time):
        since = timedelta(
            hours=value.hour,
            minutes=value.minute,
            seconds=value.second,
            microseconds=value.microsecond,
        )
        # of the two units, milliseconds have 32 bits
        return since // timedelta(microseconds=1_000 if limit == 1 << 31 else 1)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        raise _unfit(value, f"an integer of {limit.bit_length()} bits")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unfit(value, "a number")
    try:
        return float(value)
    except OverflowError:
        raise _unfit(value, "a number of 64 bits") from None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _unfit(value, "a boolean")
    return value


def _string(value: Any) -> str:
    if isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str):
        raise _unfit(value, "a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can write
        raise _unfit(value, "a string that UTF-8 can write") from None
    return value


def _binary(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray):
        raise _unfit(value, "bytes")
    return bytes(value)


def _date(value: Any) -> date:
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return _DAY_1 + timedelta(days=value)
        except OverflowError:
            raise _unfit(value, "a date") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _unfit(value, "a date")
    return value


def _timestamp(value: Any, unit_us: int) -> datetime:
    if isinstance(value, int) and not isinstance(value, bool):  # written without the logical type
        try:
            return _EPOCH + timedelta(microseconds=value * unit_us)
        except OverflowError:
            raise _unfit(value, "a time") from None
    if not isinstance(value, datetime):
        raise _unfit(value, "a time")
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _decimal(value: Any, kind: Decimals) -> Decimal:
    if isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite():
        raise _unfit(value, "a decimal number")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    before = len(digits) + exponent
    if -exponent > kind.scale or before > kind.precision - kind.scale:
        raise _unfit(value, f"a number of {kind.precision} digits, {kind.scale} of them decimals")
    return value


_PLAIN: Final[Mapping[str, Fit]] = {
    "boolean": _boolean,
    "float": _number,
    "double": _number,
    "string": _string,
    "binary": _binary,
    "date": _date,
}


def _unfit(value: Any, expected: str) -> Unfit:
    return Unfit(f"expected {expected}, got {type(value).__name__}")
