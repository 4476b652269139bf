"""A refusal: one exception with Kafka's error code and the message that the client gets.

A handler raises it while a request is decided, and the handler of the API catches it once. Nothing
has been changed by then, so a refused request leaves no trace.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode

__all__ = ["Refused"]


class Refused(Exception):
    """A request, or one of its items, is refused with ``code``.

    ``message`` is what the client is shown; ``None`` where the broker says nothing more.
    """

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message
