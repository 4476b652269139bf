"""Wraps any object with a coroutine ``token`` as the token provider that aiokafka requires.

A CancelledError raised by it, from a task that it awaits, is its failure: the caller that opens the
connection must not take it for its own cancellation. The text of its other errors is not repeated:
it may contain the answer of a token server, or the token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider

from kip848_client.errors import ConfigError, Kip848Error

__all__ = ["in_the_clear", "with_token_provider"]


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, provider: Any) -> None:
        self._provider = provider

    async def token(self) -> Any:
        try:
            token = await self._provider.token()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            failure: Kip848Error = ConfigError(
                "token() of sasl_oauth_token_provider let a CancelledError out (of a task that it "
                "awaits?)"
            )
        except Exception as err:  # noqa: BLE001 - whatever a user's code raises
            failure = _failed("token()", err)
        else:
            if isinstance(token, str) and token.isascii():
                return token
            wrong = "text beyond ASCII" if isinstance(token, str) else type(token).__name__
            failure = ConfigError(
                f"token() of sasl_oauth_token_provider returned {wrong}, not a token as text"
            )
        raise failure  # outside the handler: an error of the user's code may contain the token

    def extensions(self) -> Any:
        extensions = getattr(self._provider, "extensions", None)
        if not callable(extensions):
            return {}
        try:
            return extensions()
        except Exception as err:  # noqa: BLE001 - whatever a user's code raises
            failure = _failed("extensions()", err)
        raise failure


def _failed(what: str, error: Exception) -> Kip848Error:
    return Kip848Error(
        f"{what} of sasl_oauth_token_provider raised {type(error).__name__}; its text is left out, "
        "because it may contain a secret: log it in the provider"
    )


def with_token_provider(security: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``security`` with a provider that aiokafka accepts; it refuses all but its own
    subclasses."""
    settings = dict(security)
    provider = settings.get("sasl_oauth_token_provider")
    provider = _unwrapped(provider)
    if provider is not None and not isinstance(provider, _TokenProvider):
        settings["sasl_oauth_token_provider"] = _TokenProvider(provider)
    return settings


def in_the_clear(security: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``security`` for a connection, with secrets in plain text."""
    return {name: _unwrapped(each) for name, each in security.items()}


def _unwrapped(value: Any) -> Any:
    """Return the value of a pydantic secret; anything else unchanged."""
    unwrap = getattr(value, "get_secret_value", None)
    return unwrap() if callable(unwrap) else value
