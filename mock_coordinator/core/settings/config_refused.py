"""The one exception of everything that describes or alters configurations."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode

__all__ = ["ConfigRefused"]


class ConfigRefused(Exception):
    """A resource is not described or altered: an error code and the broker's words."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(code.name, message)
        self.code = code
        self.message = message
