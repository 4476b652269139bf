"""What a row of the table is: a bug, and the tests that would see it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.support.planting import Plant

__all__ = ["KnownBug", "Proof", "Test", "module_of", "name_of"]

Test = Callable[..., Any]


class Proof(NamedTuple):
    """A test, and how to put the bug into our code: then the test fails."""

    test: Test
    plants: tuple[Plant, ...]
    arguments: tuple[Any, ...] = ()
    """Of the test, if it has some."""
    crash: type[Exception] = AssertionError
    """What the bug raises, if it does not just behave wrongly."""


class KnownBug(NamedTuple):
    """A bug that clients had, or would have."""

    seen_in: str
    """Where one can read of it, as the tests name it too: ``KAFKA-17182; sarama #1644``."""
    wrong: str
    right: str
    """What ours does instead."""
    proofs: tuple[Proof, ...]
    of_the_broker: tuple[Test, ...] = ()
    """Tests that the bundled broker does what the bug needs."""


def module_of(test: Test) -> str:
    """The name of the module of a test."""
    module: str = inspect.unwrap(test).__module__
    return module


def name_of(test: Test) -> str:
    """The name of a test as pytest says it."""
    name: str = inspect.unwrap(test).__qualname__
    return name.replace(".", "::")
