"""How the transaction coordinator refuses: one exception with Kafka's error code.

Its APIs carry no messages. Raised while a request is being decided, before anything has been
changed.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode

__all__ = ["TransactionRefusedError"]


class TransactionRefusedError(Exception):
    """The coordinator refuses a request with ``code``."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
