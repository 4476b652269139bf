"""Any object with a coroutine ``token`` as the token provider that aiokafka insists on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiokafka.abc import AbstractTokenProvider

__all__ = ["with_token_provider"]


class _TokenProvider(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, provider: Any) -> None:
        self._provider = provider

    async def token(self) -> Any:
        return await self._provider.token()

    def extensions(self) -> Any:
        extensions = getattr(self._provider, "extensions", None)
        return extensions() if callable(extensions) else {}


def with_token_provider(security: Mapping[str, Any]) -> dict[str, Any]:
    """``security`` with a provider that aiokafka takes; it refuses all but its own subclasses."""
    settings = dict(security)
    provider = settings.get("sasl_oauth_token_provider")
    if provider is not None and not isinstance(provider, AbstractTokenProvider):
        settings["sasl_oauth_token_provider"] = _TokenProvider(provider)
    return settings
