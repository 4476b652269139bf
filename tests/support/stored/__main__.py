"""Writes ``tests/fixtures`` again: all of it, or the parts that are named."""

from __future__ import annotations

import sys
from typing import Final

from tests.support.stored import FIXTURES, data_folder, dead_letters, names, pickles, spark_folders

__all__: list[str] = []

_MAKERS: Final = {
    "pickles": pickles.make,
    "dead_letters": dead_letters.make,
    "names": names.make,
    "data": data_folder.make,
    "spark": spark_folders.make,
}

FIXTURES.mkdir(exist_ok=True)
for name in sys.argv[1:] or _MAKERS:
    if name not in _MAKERS:
        sys.exit(f"there is no part {name!r}: name some of {', '.join(_MAKERS)}, or none for all")
    _MAKERS[name](FIXTURES)
