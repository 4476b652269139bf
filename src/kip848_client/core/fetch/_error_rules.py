"""Reactions to error codes in Fetch answers: one table for codes of a partition, one for codes of
the whole answer.

By default the partition rests, longer each time; meanwhile it is left out of requests, then tried
again. The user is not notified until this has lasted for some time: leaders move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import Kip848Error, RecordUnreadable, broker_error

__all__ = [
    "ANNOUNCED_AFTER_MS",
    "QUIET_MS",
    "RULES",
    "WHOLE_RULES",
    "Reaction",
    "WholeReaction",
    "fetch_error",
    "reaction",
    "reaction_to_whole",
]

ANNOUNCED_AFTER_MS: Final = 1_000
"""A look-up of offsets or positions that takes longer is logged."""
QUIET_MS: Final = 10_000
"""How long a transient error lasts before it is reported."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What to do. In all cases a replica that was read instead of the leader is abandoned."""

    tries: int | None = None
    """Number of retries before the partition stops and the error is raised; ``None``: unlimited."""
    learn: bool = False
    """Request metadata: the leader has changed, or there is none."""
    learn_after_ms: int = 0
    """Do so only when the error has lasted this long."""
    doubt_after_ms: int | None = None
    """When the error has lasted this long, accept the next metadata even if its epoch is older."""
    hint: bool = False
    """The answer may name the leader (KIP-951)."""
    check: bool = False
    """Look up the range of offsets at the leader before believing the error."""
    hint_text: str = ""
    """What the user can do about it."""


_MOVED: Final = Reaction(learn=True, hint=True)
_LEARN: Final = Reaction(learn=True)

RULES: Final[dict[int, Reaction]] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: Reaction(),
    ErrorCode.OFFSET_OUT_OF_RANGE: Reaction(check=True),
    ErrorCode.CORRUPT_MESSAGE: Reaction(tries=3),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: _LEARN,
    ErrorCode.LEADER_NOT_AVAILABLE: _LEARN,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: _MOVED,
    ErrorCode.REPLICA_NOT_AVAILABLE: _LEARN,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: Reaction(
        tries=0, hint_text="the principal needs READ on the topic"
    ),
    ErrorCode.INVALID_REQUEST: Reaction(tries=1),
    ErrorCode.KAFKA_STORAGE_ERROR: _LEARN,
    ErrorCode.FENCED_LEADER_EPOCH: _MOVED,
    # the broker lags behind the newest election; metadata would only repeat what is known
    ErrorCode.UNKNOWN_LEADER_EPOCH: Reaction(
        learn=True, learn_after_ms=1_000, doubt_after_ms=QUIET_MS
    ),
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: Reaction(
        tries=0, hint_text="the broker refuses to send the topic's codec in this Fetch version"
    ),
    ErrorCode.OFFSET_NOT_AVAILABLE: _LEARN,
    ErrorCode.UNKNOWN_TOPIC_ID: _LEARN,
    ErrorCode.INCONSISTENT_TOPIC_ID: _LEARN,
}

_OTHERS: Final = Reaction(tries=10)


def reaction(code: int) -> Reaction:
    """Return the reaction to this error code of a partition."""
    return RULES.get(code, _OTHERS)


@dataclass(frozen=True, slots=True)
class WholeReaction:
    """What to do when a broker refuses a whole Fetch. In all cases the next request opens another
    session."""

    is_over: bool = False
    """The session no longer exists at the broker, so it need not be closed."""
    again: bool = False
    """The first time in a row, send the next request at once; after that the broker rests for a
    while, longer each time."""
    learn: bool = False
    """Request the leaders and ids of all topics in the request."""
    warns: bool = True
    """Log it as a warning."""
    stops: bool = False
    """When it is repeated, stop the partitions of the request and raise the error."""


WHOLE_RULES: Final[dict[int, WholeReaction]] = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: WholeReaction(is_over=True, again=True, warns=False),
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: WholeReaction(again=True, warns=False),
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: WholeReaction(learn=True, warns=False),
    ErrorCode.UNSUPPORTED_VERSION: WholeReaction(stops=True),
    ErrorCode.INVALID_REQUEST: WholeReaction(stops=True),
}

_OTHER_WHOLES: Final = WholeReaction()


def reaction_to_whole(code: int) -> WholeReaction:
    """Return the reaction to this error code of a whole answer."""
    return WHOLE_RULES.get(code, _OTHER_WHOLES)


def fetch_error(code: int, tp: TopicPartition, offset: int) -> Kip848Error:
    """Build the error raised for a partition that stopped."""
    where = f"{shown(tp)} at offset {offset}"
    if code == ErrorCode.CORRUPT_MESSAGE:
        return RecordUnreadable(
            f"{where}: the broker cannot read its own log (CORRUPT_MESSAGE); "
            "repair the broker's disk, or seek past the damage",
            topic=tp[0],
            partition=tp[1],
            offset=offset,
        )
    hint = reaction(code).hint_text
    return broker_error(code, error_name(code), where, api="Fetch", hint=hint)
