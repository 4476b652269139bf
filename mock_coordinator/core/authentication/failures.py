"""Why an authentication failed, in words that the client may see."""

from __future__ import annotations

from typing import Final

__all__ = ["CREDENTIALS_DIFFER", "SaslFailure"]

CREDENTIALS_DIFFER: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class SaslFailure(Exception):
    """The client is not who it says. Without words, none that could help a guesser are given;
    ``silent``: the connection is closed without an answer."""

    def __init__(self, words: str | None = None, *, silent: bool = False) -> None:
        super().__init__(words)
        self.words = words
        self.silent = silent
