"""Reactions of a member to error codes of ConsumerGroupHeartbeat and of the coordinator look-up.
Pure tables.

The rules that Kafka leaves to the client are these: repeated fencing is retried with a growing
pause; GROUP_ID_NOT_FOUND for a member that was in the group counts as a fence, because a group can
vanish through no fault of its own (its last KIP-848 member expired and it was converted, or it was
empty and collected), and is fatal only when the rejoin gets it too; UNRELEASED_INSTANCE_ID is fatal
for a first join (two processes share an instance id) and retried for a while on a rejoin, where the
holder may be this very member whose answer was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.core.member._events import CoordinatorFound, CoordinatorLookupFailed
from kip848_client.core.member._model import AssignorNews, HeartbeatRefused
from kip848_client.error_codes import ErrorCode, passes_in_lookup
from kip848_client.errors import BrokerError, Kip848Error, broker_error

__all__ = [
    "CHOSEN",
    "LEFT_ANYWAY",
    "RULES",
    "Reaction",
    "error_of",
    "is_chosen_by_error",
    "lookup_error",
    "lookup_reaction",
    "reaction",
]

CHOSEN: Final = AssignorNews(should_compute=True)
"""The meaning of COMPUTE_ASSIGNMENT in an answer without other fields."""


class Reaction(Enum):
    """How the member reacts to a refused heartbeat."""

    RETRY = "retry"
    """The same coordinator, after a backoff."""
    REDISCOVER = "rediscover"
    """Look up the coordinator again, then retry."""
    SURFACE = "surface"
    """Raise the error, stay in the state, retry."""
    FENCE = "fence"
    """Drop everything as lost and join again."""
    COMPUTE = "compute"
    """Stay in the state, and compute the assignment of the group; send a complete request soon."""
    WAIT_FOR_INSTANCE = "wait_for_instance"
    """Retry for a bounded time: our own previous session may hold the instance id."""
    FATAL = "fatal"
    """The user must act."""


RULES: Final[Mapping[int, Reaction]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Reaction.REDISCOVER,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.FENCE,
    ErrorCode.FENCED_MEMBER_EPOCH: Reaction.FENCE,
    ErrorCode.STALE_MEMBER_EPOCH: Reaction.FENCE,  # not expected here, and means the same
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction.SURFACE,
    ErrorCode.INVALID_GROUP_ID: Reaction.FATAL,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_VERSION: Reaction.FATAL,
    ErrorCode.INVALID_REQUEST: Reaction.FATAL,
    ErrorCode.GROUP_MAX_SIZE_REACHED: Reaction.FATAL,
    ErrorCode.FENCED_INSTANCE_ID: Reaction.FATAL,
    ErrorCode.UNSUPPORTED_ASSIGNOR: Reaction.FATAL,
    ErrorCode.INVALID_REGULAR_EXPRESSION: Reaction.FATAL,
}

LEFT_ANYWAY: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Refusals of a leave that mean success: the member is not in the group."""

_HINTS: Final[Mapping[int, str]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "the coordinator's log has the reason; where one member is assigned very many partitions, "
        "raise max.message.bytes of __consumer_offsets"
    ),
    ErrorCode.INVALID_GROUP_ID: "choose a group id that is not empty",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (
        "grant DESCRIBE and READ on the topics; the member keeps trying, but its session runs out"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "grant READ on the group to this principal",
    ErrorCode.UNSUPPORTED_VERSION: (
        "the broker must be Kafka 4.0 or newer with the feature group.version=1; this client "
        "does not fall back to the classic protocol"
    ),
    ErrorCode.GROUP_ID_NOT_FOUND: (
        "a group of this name exists with another type, or a classic group that cannot be "
        "converted; use another group id or stop its members"
    ),
    ErrorCode.GROUP_MAX_SIZE_REACHED: "raise group.consumer.max.size or stop another member",
    ErrorCode.FENCED_INSTANCE_ID: (
        "another process joined with the same group_instance_id; give each its own"
    ),
    ErrorCode.UNRELEASED_INSTANCE_ID: (
        "another member holds this group_instance_id; stop it, or wait until its session has "
        "expired"
    ),
    ErrorCode.UNSUPPORTED_ASSIGNOR: (
        "name one of the broker's group.consumer.assignors; client-side assignors need versions "
        "that go together with those of the other members"
    ),
    ErrorCode.INVALID_REGULAR_EXPRESSION: (
        "server-side patterns are RE2: no look-around, no back-references, whole-name match"
    ),
}


def reaction(refused: HeartbeatRefused, *, member_epoch: int, may_hold_instance: bool) -> Reaction:
    """The reaction to a refusal of a heartbeat that carried ``member_epoch``.

    ``may_hold_instance``: an earlier join of this member was, or may have been, accepted.
    """
    if refused.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return Reaction.FENCE if member_epoch > 0 else Reaction.FATAL
    if refused.code == ErrorCode.COMPUTE_ASSIGNMENT:
        return Reaction.COMPUTE if member_epoch > 0 else Reaction.RETRY
    if refused.code == ErrorCode.UNRELEASED_INSTANCE_ID:
        return Reaction.WAIT_FOR_INSTANCE if may_hold_instance else Reaction.FATAL
    default = Reaction.RETRY if refused.retriable else Reaction.FATAL
    return RULES.get(refused.code, default)


def is_chosen_by_error(code: int, member_epoch: int) -> bool:
    """Whether a response with this error counts as one without an error that asks the member to
    compute.

    In the draft of Connect groups COMPUTE_ASSIGNMENT is an error of the heartbeat, where KIP-848
    has a boolean. The member still has to reconcile, so such a response may have all fields of a
    normal one; an epoch shows that it does. Without an epoch it is a refusal, which the member core
    handles.
    """
    return code == ErrorCode.COMPUTE_ASSIGNMENT and member_epoch > 0


def lookup_reaction(code: int) -> Reaction:
    """Return the reaction to a refusal of FindCoordinator. The look-up is retried in any case; when
    the error is raised, a commit that waits for the look-up ends, too."""
    return Reaction.RETRY if passes_in_lookup(code) else Reaction.SURFACE


def lookup_error(event: CoordinatorFound | CoordinatorLookupFailed) -> Kip848Error | None:
    """The error of a failed look-up that the user gets; ``None`` for one that a retry may fix."""
    error = event.error if isinstance(event, CoordinatorLookupFailed) else None
    if isinstance(error, BrokerError) and lookup_reaction(error.code) is Reaction.RETRY:
        return None
    return error


def error_of(refused: HeartbeatRefused) -> BrokerError:
    """Build the exception for a refusal, with a hint for the user."""
    return broker_error(
        refused.code,
        refused.name,
        refused.message,
        api=refused.api,
        retriable=refused.retriable,
        hint=_HINTS.get(refused.code, ""),
    )
