"""Client-side assignors as a setting: is each one an assignor, and do they go together?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kip848_client.core.client_assignors import ClientAssignor
from kip848_client.core.short import short

if TYPE_CHECKING:  # a consumer needs nothing of Connect
    from kip848_client.core.connect import ConnectAssignor

__all__ = ["checked_assignors", "checked_connect_assignors"]

_INT16_MAX: Final = 32_767
_METHODS: Final = ("metadata", "assign", "on_assignment")


def checked_assignors(value: object) -> tuple[ClientAssignor, ...]:
    """``value`` as a tuple of assignors. Raises ``ValueError`` that says what is wrong."""
    return _all_checked(value, "ClientAssignor", -1)


def checked_connect_assignors(value: object) -> tuple[ConnectAssignor, ...]:
    """The same for those of workers, which have no version -1."""
    return _all_checked(value, "ConnectAssignor", 0)


def _all_checked(value: object, kind: str, lowest: int) -> tuple[Any, ...]:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _wrong(f"expected a list of client-side assignors ({kind})")
    assignors = tuple(value)
    names: set[str] = set()
    for assignor in assignors:
        name = _checked(assignor, kind, lowest)
        if name in names:
            raise ValueError(f"there are two assignors of the name {name!r}; one has to go")
        names.add(name)
    return assignors


def _checked(assignor: Any, kind: str, lowest: int) -> str:
    if isinstance(assignor, type):
        what = f"{assignor.__name__} is a class"
        raise _wrong(f"{what}; give an instance: {assignor.__name__}()")
    try:
        name, low, high = assignor.name, assignor.minimum_version, assignor.maximum_version
        missing = [each for each in _METHODS if not callable(getattr(assignor, each, None))]
    except Exception as err:
        raise ValueError(f"{short(assignor)} is no {kind}: {type(err).__name__}: {err}") from err
    if missing:
        raise ValueError(f"{short(assignor)} is no {kind}: it has no method {missing[0]}")
    if not isinstance(name, str) or not name.strip() or len(name.encode()) > _INT16_MAX:
        raise ValueError(f"the name of {short(assignor)} is {short(name)}: expected a short text")
    for each, version in (("minimum_version", low), ("maximum_version", high)):
        if isinstance(version, bool) or not isinstance(version, int):
            raise _wrong(f"{each} of assignor {name} is {short(version)}: expected a number")
    if not lowest <= low <= high <= _INT16_MAX or high < 0:
        raise ValueError(
            f"assignor {name} has versions {low} to {high}: expected a minimum_version of "
            f"{lowest} or more, and a maximum_version from there, and from 0, to {_INT16_MAX}"
        )
    return name


def _wrong(what: str) -> ValueError:
    return ValueError(what)  # of pydantic's two, the one that becomes a ConfigError
