"""Compiled modules are kept, also where Python is told not to write them beside the sources.

With ``PYTHONDONTWRITEBYTECODE`` each worker would compile all tests again, and each program that a
test starts would compile the client and the broker. So they go to a folder in pytest's own cache,
from which the next run takes them as well.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import pytest

__all__ = ["pytest_configure"]

_FORBIDDEN: Final = "PYTHONDONTWRITEBYTECODE"
_ELSEWHERE: Final = "PYTHONPYCACHEPREFIX"


def pytest_configure(config: pytest.Config) -> None:
    """Workers and programs get it by their environment."""
    cache: pytest.Cache | None = getattr(config, "cache", None)  # none with -p no:cacheprovider
    if not sys.dont_write_bytecode or cache is None or _ELSEWHERE in os.environ:
        return
    folder = str(cache.mkdir("bytecode"))
    os.environ.pop(_FORBIDDEN, None)
    os.environ[_ELSEWHERE] = sys.pycache_prefix = folder
    sys.dont_write_bytecode = False
