"""Imports names of a package at first use, so that importing the package is fast."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package.

    Args:
        package: The name of the package.
        homes: The module of each name.

    Returns:
        The function, which raises ``AttributeError`` for other names.
    """

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, found)
        return found

    return get
