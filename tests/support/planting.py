"""Puts a bug into the code for one test: other words in the place of a few right ones."""

from __future__ import annotations

import asyncio
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

__all__ = ["Plant", "PlantedBug", "plant"]


class Plant(NamedTuple):
    """One bug, or a part of one. ``owner`` is a class or a module."""

    owner: Any
    function: str
    right: str
    wrong: str


def plant(monkeypatch: pytest.MonkeyPatch, *bugs: Plant) -> None:
    """Put the wrong words in the place of the right ones, which must be there once. Lines have the
    indentation that they have in the file."""
    sources: dict[tuple[Any, str], str] = {}
    for owner, function, right, wrong in bugs:
        key = (owner, function)
        if key not in sources:
            sources[key] = inspect.getsource(getattr(owner, function))
        assert sources[key].count(right) == 1, f"{function} does not say {right!r} once"
        sources[key] = sources[key].replace(right, wrong)
    for (owner, function), source in sources.items():
        module = owner if inspect.ismodule(owner) else sys.modules[owner.__module__]
        made: dict[str, Any] = {}
        text = textwrap.dedent(source)
        exec(f"from __future__ import annotations\n{text}", vars(module), made)
        right = getattr(owner, function)
        for each in _with(owner, function, right):
            monkeypatch.setattr(each, function, made[function])


def _with(owner: Any, function: str, right: object) -> list[Any]:
    """Where the function is known by its name: a module's also where it was imported."""
    if not inspect.ismodule(owner):
        return [owner]
    return [each for each in sys.modules.values() if vars(each).get(function) is right]


class PlantedBug(NamedTuple):
    """A bug and a test that must find it. ``test`` may be a coroutine function."""

    plant: Plant
    test: Callable[..., Any]
    arguments: Mapping[str, Any] = MappingProxyType({})

    def is_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Assert that the test passes without the bug, and fails with it."""
        self._play()
        plant(monkeypatch, self.plant)
        with pytest.raises((AssertionError, ValueError, ExceptionGroup)):
            self._play()

    def _play(self) -> None:
        result = self.test(**self.arguments)
        if inspect.iscoroutine(result):
            asyncio.run(result)
