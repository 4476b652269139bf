"""Copies a core in the middle of a random life, and gives both the same calls from then on.

``Copying`` changes the classes that it follows for as long as it is active. Calls from outside of
them are counted. At the chosen one the core is copied; every further call, on the core or on an
object that was copied with it, is made on both, and both must return the same.

What a core gets from outside (jitter, ids, builders) may be random. So the answers that the
original gets are recorded and given to the copy.
"""

from __future__ import annotations

import copy
from asyncio import Future
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from inspect import getattr_static
from types import (
    BuiltinMethodType,
    FunctionType,
    GeneratorType,
    MappingProxyType,
    MethodType,
    ModuleType,
    NoneType,
    TracebackType,
)
from typing import Any, Final

from kip848_client.core.outside import from_outside

__all__ = ["Copying", "described"]

_ATOMS: Final = (int, float, str, bytes, bytearray, memoryview, type, ModuleType, Enum, NoneType)
_SHARED: Final = f"{from_outside.__qualname__}.<locals>.call"
EVENTS: Final = 100
"""How many calls both get."""


def described(value: object, depth: int = 0) -> object:
    """A value in plain types, to compare: exceptions and objects without ``__eq__``, too."""
    assert depth < 40, "what a core returns is not a cycle"
    if isinstance(value, Enum | FunctionType):
        return value
    if isinstance(value, BaseException):
        return type(value), str(value), described(vars(value), depth + 1)
    if isinstance(value, Mapping):
        rows: Iterable[tuple[object, object]] = value.items()
        return [(described(key, depth + 1), described(each, depth + 1)) for key, each in rows]
    if isinstance(value, Set):
        return sorted(repr(described(each, depth + 1)) for each in value)
    if isinstance(value, bytes | bytearray | str | memoryview):
        return bytes(value) if isinstance(value, memoryview) else value
    if isinstance(value, Sequence | deque):
        return [type(value), *(described(each, depth + 1) for each in value)]
    if is_dataclass(value):
        return type(value), [
            described(getattr(value, each.name), depth + 1) for each in fields(value)
        ]
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return type(value), described(vars(value), depth + 1)
    return value


def tied_to_the_original(core: object) -> Iterator[tuple[str, object]]:
    """What ``copy.deepcopy`` would share between a core and its copy, or cannot copy, with the
    path to it: closures, methods of built-in objects, generators."""
    seen: set[int] = set()
    left: list[tuple[str, object]] = [(type(core).__name__, core)]
    while left:
        path, value = left.pop()
        if id(value) in seen or isinstance(value, _ATOMS):
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if not _is_constant(value) and value.__qualname__ != _SHARED:
                yield path, value
        elif isinstance(value, BuiltinMethodType):
            if not isinstance(value.__self__, ModuleType | type):
                yield path, value
        elif isinstance(value, GeneratorType | MappingProxyType | Future):
            yield path, value
        else:
            left.extend((f"{path}{name}", each) for name, each in _held_by(value))


def _is_constant(value: object) -> bool:
    if isinstance(value, FunctionType):
        return all(_is_constant(each.cell_contents) for each in value.__closure__ or ())
    if isinstance(value, tuple | frozenset):
        return all(map(_is_constant, value))
    if isinstance(value, Mapping):
        return all(map(_is_constant, value.values()))
    return isinstance(value, _ATOMS)


def _held_by(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield "[key]", key
            yield f"[{key!r:.40}]", each
    elif isinstance(value, Sequence | Set | deque):
        yield from (("[]", each) for each in value)
    elif isinstance(value, partial):
        yield from (("()", each) for each in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, MethodType):
        yield ".__self__", value.__self__
    else:
        for owner in type(value).__mro__:
            names = owner.__dict__.get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                if hasattr(value, name):
                    yield f".{name}", getattr(value, name)
        yield from ((f".{name}", each) for name, each in getattr(value, "__dict__", {}).items())


class _Outside:
    """A function that a core was given: it records for the copy, or plays back."""

    def __init__(self, function: Callable[..., Any], copying: Copying) -> None:
        self._function = function
        self._copying = copying

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tape = self._copying.tape
        if self._copying.is_copy:
            asked, answer = tape.popleft()
            assert asked == described((args, kwargs)), "the copy asks for something else"
            return answer
        if not self._copying.is_recording:
            return self._function(*args, **kwargs)
        self._copying.is_recording = False  # a core in a core may have wrapped this one once more
        answer = self._function(*args, **kwargs)
        self._copying.is_recording = True
        tape.append((described((args, kwargs)), copy.deepcopy(answer)))
        return answer


class Copying:
    """Copies the instance of ``core`` that gets the call number ``at``, and compares.

    ``beside`` are classes whose objects the driver calls, too, when they are part of the core.
    ``cores`` are all classes that get functions from outside, by ``__init__`` or ``watched_by``.
    ``ignored`` are methods that change nothing, and return more than can be compared. ``parts``
    gives those objects that a core makes as it goes.
    """

    def __init__(
        self,
        core: type,
        at: int,
        *,
        beside: Iterable[type] = (),
        cores: Iterable[type] = (),
        ignored: Collection[str] = (),
        parts: Callable[[Any], Mapping[Any, object]] = lambda _core: {},
    ) -> None:
        self.compared = 0
        """How many calls both got."""
        self.tape: deque[tuple[object, Any]] = deque()
        self.is_copy = False
        self.is_recording = False
        self._core = core
        self._at = at
        self._parts = parts
        self._ignored = frozenset(ignored)
        self._followed = (core, *beside)
        self._cores = {core, *cores}
        self._calls = 0
        self._depth = 0
        self._copy: object = None
        self._copies: dict[int, Any] = {}
        self._kept: list[object] = []
        """What ``_copies`` has the ids of."""
        self._before: list[tuple[type, str, Any]] = []

    def __enter__(self) -> Copying:
        for each in self._cores:
            for name in ("__init__", "watched_by"):
                if hasattr(each, name):
                    self._replace(each, name, self._wrapped_taking(getattr(each, name)))
        for each in self._followed:
            for name in dir(each):
                function = getattr_static(each, name)
                hidden = name.startswith("_") or name in self._ignored
                if isinstance(function, FunctionType) and not hidden:
                    self._replace(each, name, self._wrapped(each, function))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each, name, value in self._before:
            if value is None:
                delattr(each, name)
            else:
                setattr(each, name, value)

    def _replace(self, owner: type, name: str, value: Any) -> None:
        self._before.append((owner, name, vars(owner).get(name)))  # None: inherited
        setattr(owner, name, value)

    def _wrapped_taking(self, take: Any) -> Callable[..., None]:
        def outside(value: Any) -> Any:
            return _Outside(value, self) if callable(value) and self._is_given(value) else value

        def taking(core: Any, *args: Any, **kwargs: Any) -> None:
            take(core, *map(outside, args), **{key: outside(each) for key, each in kwargs.items()})

        return taking

    def _is_given(self, value: Any) -> bool:
        return not isinstance(value, _Outside)

    def _wrapped(self, owner: type, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(core: Any, *args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return function(core, *args, **kwargs)
            if owner is self._core and type(core) is owner:
                self._calls += 1
                if self._calls == self._at:
                    assert not (found := list(tied_to_the_original(core))), found
                    self._copy = copy.deepcopy(core, self._copies)
            twin = self._copies.get(id(core))
            if twin is None or self.compared == EVENTS:
                return self._outer(function, core, args, kwargs)
            return self._both(function, core, twin, args, kwargs)

        return call

    def _outer(self, function: Callable[..., Any], core: Any, args: Any, kwargs: Any) -> Any:
        self._depth += 1
        try:
            return function(core, *args, **kwargs)
        finally:
            self._depth -= 1

    def _both(
        self, function: Callable[..., Any], core: Any, twin: Any, args: Any, kwargs: Any
    ) -> Any:
        mapped = [self._copies.get(id(each), each) for each in args]
        named = {key: self._copies.get(id(each), each) for key, each in kwargs.items()}
        self.is_recording, self.tape = True, deque()
        result, error = self._outcome(function, core, args, kwargs)
        self.is_recording, self.is_copy = False, True
        of_copy, error_of_copy = self._outcome(function, twin, mapped, named)
        self.is_copy = False
        assert described(of_copy) == described(result), (function, args, result, of_copy)
        assert described(error_of_copy) == described(error), (function, args)
        assert not self.tape, "the copy asks for less"
        for name in ("deadline_ms", "due_ms"):
            assert getattr(twin, name, None) == getattr(core, name, None), name
        self._note(result, of_copy)
        self._note_parts(core, twin)
        if type(core) is self._core:
            self.compared += 1
        if error is not None:
            raise error
        return result

    def _outcome(
        self, function: Callable[..., Any], core: Any, args: Any, kwargs: Any
    ) -> tuple[Any, Exception | None]:
        try:
            return self._outer(function, core, args, kwargs), None
        except Exception as error:  # noqa: BLE001 - both must raise the same
            return None, error

    def _note_parts(self, core: Any, twin: Any) -> None:
        if type(core) is self._core:
            other = self._parts(twin)
            for key, each in self._parts(core).items():
                self._copies[id(each)] = other[key]
                self._kept.append(each)

    def _note(self, result: Any, of_copy: Any) -> None:
        """A later call may be about what this one returned."""
        pairs = (
            zip(result, of_copy, strict=True) if isinstance(result, list) else [(result, of_copy)]
        )
        for one, other in pairs:
            if one is not other:
                self._copies[id(one)] = other
                self._kept.append(one)
