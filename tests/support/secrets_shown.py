"""Looks for a secret in everything that an error, a log or a settings object shows."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel

from kip848_client.errors import Kip848Error

SECRET: Final = f"Open-Sesame-{4711}"
"""No line of source code has it, so that tracebacks show it only where a value leaks."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and contexts, suppressed ones too, and the members of groups."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [one for one in (each.__cause__, each.__context__) if one is not None]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions


def texts_of(error: BaseException) -> Iterator[str]:
    """All that can be printed of an error, also after it has travelled."""
    yield "".join(traceback.format_exception(error))
    for each in chain(error):
        yield str(each)
        yield repr(each)
        if isinstance(each, Kip848Error):
            yield repr(vars(each))
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        yield "".join(traceback.format_exception(other))
        yield repr(other)


def dumps_of(settings: Any) -> Iterator[str]:
    """All that can be printed of an object with settings."""
    yield repr(settings)
    yield str(settings)
    if isinstance(settings, BaseModel):
        yield settings.model_dump_json(exclude={"ssl_context"})
        yield repr(settings.model_dump())
        yield repr(vars(settings))
        yield repr(dict(settings))
    elif dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        yield repr(dataclasses.asdict(settings))


def shows(texts: Iterator[str], secret: str = SECRET) -> list[str]:
    """The texts that show the secret, as ``repr`` shows it, too."""
    return [each for each in texts if secret in each or secret in each.replace("\\\\", "\\")]


def refusal_of(make: Callable[[], object]) -> BaseException:
    """What ``make`` raises."""
    try:
        made = make()
    except Exception as err:  # noqa: BLE001 - whatever it is, it must not show the secret
        return err
    raise AssertionError(f"nothing was wrong with {type(made)}")


def refusal_in_loop(make: Callable[[], object]) -> BaseException:
    """The same in an event loop, which aiokafka's classes ask for."""

    async def run() -> BaseException:
        return refusal_of(make)

    return asyncio.run(run())
