"""Imports every name of the ``__all__`` of each public module, or of the modules that are named."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator

__all__: list[str] = []

PACKAGES = ("kip848_client", "mock_coordinator", "pyspark_kip848")


def _public(package: str) -> Iterator[str]:
    yield package
    path = importlib.import_module(package).__path__
    for found in pkgutil.walk_packages(path, f"{package}.", onerror=_raised):
        if not any(part.startswith("_") for part in found.name.split(".")):
            yield found.name


def _raised(name: str) -> None:
    raise ImportError(f"{name} cannot be imported") from sys.exc_info()[1]


def main() -> None:
    """Say how many there are; end with an error for one that is not there."""
    modules = sys.argv[1:] or [name for package in PACKAGES for name in _public(package)]
    count = 0
    for name in modules:
        module = importlib.import_module(name)
        file = module.__file__ or ""
        assert file.startswith(sys.prefix), f"{name} was imported from {file}"
        for each in getattr(module, "__all__", ()):
            getattr(module, each)
            count += 1
    assert count >= len(modules), f"{count} names in {len(modules)} modules"
    sys.stdout.write(f"{count} names of {len(modules)} modules\n")


main()
