"""Reactions to error codes in answers about telemetry: a table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.error_codes import ErrorCode, is_retriable

__all__ = ["RULES", "Reaction", "reaction"]


class Reaction(Enum):
    """The next action."""

    ASK_AGAIN = "ask for the subscription again, at once"
    LATER = "ask for the subscription again when an interval is over"
    SMALLER = "the same, and push half as much from then on"
    STOP = "push nothing any more"


RULES: Final[Mapping[ErrorCode, Reaction]] = {
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: Reaction.ASK_AGAIN,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: Reaction.ASK_AGAIN,
    ErrorCode.TELEMETRY_TOO_LARGE: Reaction.SMALLER,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Reaction.LATER,
    ErrorCode.INVALID_RECORD: Reaction.STOP,
    ErrorCode.INVALID_REQUEST: Reaction.STOP,
    ErrorCode.UNSUPPORTED_VERSION: Reaction.STOP,
}
"""The codes named in KIP-714."""


def reaction(error_code: int) -> Reaction:
    """Return the reaction to any code: after a retriable one that KIP-714 does not name, pushing
    continues."""
    found = RULES.get(ErrorCode(error_code)) if error_code in set(ErrorCode) else None
    if found is not None:
        return found
    return Reaction.LATER if is_retriable(error_code) else Reaction.STOP
