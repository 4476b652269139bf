"""Any object with a coroutine ``token`` as the token provider that aiokafka insists on.

A CancelledError that comes out of it, of a task that it awaits, is its failure: who opens the
connection must not take it for the end of his own task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider

from kip848_client.errors import ConfigError

__all__ = ["in_the_clear", "with_token_provider"]


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, provider: Any) -> None:
        self._provider = provider

    async def token(self) -> Any:
        try:
            return await self._provider.token()
        except asyncio.CancelledError as err:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ConfigError(
                "token() of sasl_oauth_token_provider let a CancelledError out (of a task that it "
                "awaits?)"
            ) from err

    def extensions(self) -> Any:
        extensions = getattr(self._provider, "extensions", None)
        return extensions() if callable(extensions) else {}


def with_token_provider(security: Mapping[str, Any]) -> dict[str, Any]:
    """``security`` with a provider that aiokafka takes; it refuses all but its own subclasses."""
    settings = dict(security)
    provider = settings.get("sasl_oauth_token_provider")
    provider = _unwrapped(provider)
    if provider is not None and not isinstance(provider, _TokenProvider):
        settings["sasl_oauth_token_provider"] = _TokenProvider(provider)
    return settings


def in_the_clear(security: Mapping[str, Any]) -> dict[str, Any]:
    """``security`` as a connection takes it, without the wrappers that hide secrets."""
    return {name: _unwrapped(each) for name, each in security.items()}


def _unwrapped(value: Any) -> Any:
    """What one of pydantic's secrets holds; anything else as it is."""
    unwrap = getattr(value, "get_secret_value", None)
    return unwrap() if callable(unwrap) else value
