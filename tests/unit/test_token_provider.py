"""A user's token provider, as the code that opens connections sees it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.abc import AbstractTokenProvider

from kip848_client._aiokafka._tokens import with_token_provider
from kip848_client.errors import ConfigError

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
