"""What an error code in an answer about telemetry leads to: a table."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.error_codes import ErrorCode, is_retriable

__all__ = ["VERDICTS", "Verdict", "verdict_on"]


class Verdict(Enum):
    """What comes next."""

    ASK_AGAIN = "ask for the subscription again, at once"
    LATER = "ask for the subscription again when an interval is over"
    SMALLER = "the same, and push half as much from then on"
    STOP = "push nothing any more"


VERDICTS: Final[Mapping[ErrorCode, Verdict]] = {
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID: Verdict.ASK_AGAIN,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: Verdict.ASK_AGAIN,
    ErrorCode.TELEMETRY_TOO_LARGE: Verdict.SMALLER,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: Verdict.LATER,
    ErrorCode.INVALID_RECORD: Verdict.STOP,
    ErrorCode.INVALID_REQUEST: Verdict.STOP,
    ErrorCode.UNSUPPORTED_VERSION: Verdict.STOP,
}
"""Those that KIP-714 names."""


def verdict_on(error_code: int) -> Verdict:
    """Of a code that KIP-714 does not name, too: one that Kafka calls retriable is no reason to
    stop."""
    found = VERDICTS.get(ErrorCode(error_code)) if error_code in set(ErrorCode) else None
    if found is not None:
        return found
    return Verdict.LATER if is_retriable(error_code) else Verdict.STOP
