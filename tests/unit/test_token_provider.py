"""A user's token provider, as the code that opens connections sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider

from kip848_client.errors import ConfigError, Kip848Error
from kip848_client.runtime.net._tokens import with_token_provider
from tests.support.secrets_shown import SECRET, shows, texts_of

pytestmark = pytest.mark.asyncio


class Plain:
    """Lets a CancelledError out, or waits."""

    def __init__(self, *, waits: bool = False) -> None:
        self._waits = waits

    async def token(self) -> str:
        if self._waits:
            await asyncio.Event().wait()
        raise asyncio.CancelledError


class Theirs(Plain, AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    """The same as a class of aiokafka's."""


def wrapped(provider: Any) -> Any:
    return with_token_provider({"sasl_oauth_token_provider": provider})["sasl_oauth_token_provider"]


@pytest.mark.parametrize("kind", [Plain, Theirs])
async def test_a_cancelled_error_of_its_own_is_its_failure(kind: type[Plain]) -> None:
    with pytest.raises(ConfigError, match="let a CancelledError out"):
        await wrapped(kind()).token()


async def test_who_is_cancelled_while_it_waits_is_cancelled() -> None:
    task = asyncio.create_task(wrapped(Plain(waits=True)).token())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


class Fails:
    """Raises what it is given, or returns it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    async def token(self) -> Any:
        return self._given()

    def extensions(self) -> Any:
        return self._given()

    def _given(self) -> Any:
        made = self._make()
        if isinstance(made, BaseException):
            raise made
        return made


def _caused() -> Exception:
    error = RuntimeError("refused")
    error.__cause__ = ValueError(f"client_secret={SECRET}")
    error.add_note(SECRET)
    return error


ERRORS: dict[str, Callable[[], BaseException]] = {
    "own": lambda: RuntimeError(f"token {SECRET} has expired"),
    "os": lambda: OSError(SECRET),
    "time": lambda: TimeoutError(SECRET),
    "group": lambda: ExceptionGroup(SECRET, [ValueError(SECRET)]),
    "cause": _caused,
    "unicode": lambda: UnicodeEncodeError("utf-8", SECRET, 0, 1, "no"),
}


@pytest.mark.parametrize("case", [*ERRORS, "cancelled"])
async def test_an_error_of_it_is_told_without_its_text(case: str) -> None:
    make = ERRORS.get(case, lambda: asyncio.CancelledError(SECRET))
    with pytest.raises(Kip848Error, match=type(make()).__name__) as caught:
        await wrapped(Fails(make)).token()
    assert not shows(texts_of(caught.value))


@pytest.mark.parametrize("case", ERRORS)
async def test_an_error_of_its_extensions_is_told_without_its_text(case: str) -> None:
    with pytest.raises(Kip848Error, match=r"extensions\(\) .* raised") as caught:
        wrapped(Fails(ERRORS[case])).extensions()
    assert not shows(texts_of(caught.value))


@pytest.mark.parametrize(
    "wrong", [SECRET.encode(), {"access_token": SECRET}, f"{SECRET}\ud800", None]
)
async def test_a_token_is_a_text(wrong: object) -> None:
    with pytest.raises(ConfigError, match=r"returned (bytes|dict|text beyond|NoneType)") as caught:
        await wrapped(Fails(lambda: wrong)).token()
    assert not shows(texts_of(caught.value))
