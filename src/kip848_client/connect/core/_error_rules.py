"""The meaning of the error codes of JoinGroup, SyncGroup, Heartbeat and LeaveGroup: tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import BrokerError, broker_error

__all__ = ["RULES", "Reaction", "classic_error", "is_at_work", "reaction"]


class Reaction(Enum):
    """How the worker reacts to a refusal."""

    RETRY = "retry"
    """Retry with the same coordinator after a backoff."""
    REDISCOVER = "rediscover"
    """Look the coordinator up again, then retry."""
    TAKE_ID = "take the id"
    """Rejoin at once, with the id that the coordinator assigned."""
    REJOIN = "rejoin"
    """Rejoin, and keep the running items."""
    FENCE = "fence"
    """Drop everything as lost and join again as a new member."""
    FATAL = "fatal"
    """The user must act."""


RULES: Final[Mapping[int, Reaction]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Reaction.REDISCOVER,
    ErrorCode.MEMBER_ID_REQUIRED: Reaction.TAKE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: Reaction.REJOIN,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FENCE,
    ErrorCode.FENCED_INSTANCE_ID: Reaction.FATAL,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: Reaction.FATAL,
    ErrorCode.INVALID_SESSION_TIMEOUT: Reaction.FATAL,
    ErrorCode.INVALID_GROUP_ID: Reaction.FATAL,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.GROUP_MAX_SIZE_REACHED: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Reaction.FATAL,
}

_HINTS: Final[Mapping[int, str]] = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "the group has members of another type, or workers that share no connect.protocol with "
        "this one; use another group id"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session_timeout_ms has to lie between the broker's group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: "choose a group id that is not empty",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant READ on the group to this principal",
    ErrorCode.GROUP_MAX_SIZE_REACHED: "raise group.max.size or stop another worker",
}


def reaction(code: int) -> Reaction:
    """The reaction to a refusal. A code without a rule is retried if Kafka calls it retriable."""
    default = Reaction.RETRY if is_retriable(code) else Reaction.FATAL
    return RULES.get(code, default)


def is_at_work(code: int) -> bool:
    """Whether a coordinator that refuses with this code is working: it is the right one, and has
    loaded the group."""
    return reaction(code) not in (Reaction.RETRY, Reaction.REDISCOVER)


def classic_error(api: str, code: int) -> BrokerError:
    """The user's exception for a refusal, with the way out."""
    retriable = is_retriable(code)
    hint = _HINTS.get(code, "")
    return broker_error(code, error_name(code), None, api=api, retriable=retriable, hint=hint)
