"""Python's garbage collector rests while ten thousand tests are collected, and passes by what was
collected from then on: it stays until the end, and to look through it again and again takes
seconds, also of each test that calls the collector."""

from __future__ import annotations

import gc

import pytest

__all__ = ["pytest_collection", "pytest_collection_finish"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    gc.disable()


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()
