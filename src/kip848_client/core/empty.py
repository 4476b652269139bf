"""An immutable empty mapping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

__all__ = ["EMPTY"]


class _Empty(Mapping[Any, Any]):
    """Like a mapping proxy of an empty dict, but it can be copied, pickled, and be the default of a
    dataclass field.
    """

    __slots__ = ()

    def __getitem__(self, key: object) -> NoReturn:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"

    def __reduce__(self) -> str:
        return "EMPTY"


EMPTY: Final[Mapping[Any, Any]] = _Empty()
