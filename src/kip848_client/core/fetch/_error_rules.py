"""What an error code in a Fetch answer leads to: a table for those of a partition, and one for
those of the whole answer.

Where nothing else is said, the partition rests, each time longer, is left out of requests meanwhile
and tried again. That is not told to the user before it has lasted for some time: leaders move.
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
"""A look-up of offsets or positions that takes longer is worth a line in the log."""
QUIET_MS: Final = 10_000
"""For so long trouble that may pass is not told."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What to do. Whatever it is, a replica that was read instead of the leader is left."""

    tries: int | None = None
    """How often it is tried again before the partition stops and the user is told; ``None``: for
    ever."""
    learn: bool = False
    """Ask for metadata: somebody else leads it, or nobody."""
    learn_after_ms: int = 0
    """Do so only when the trouble has lasted for this time."""
    doubt_after_ms: int | None = None
    """When it has lasted for this time, believe what metadata says next, whatever we know."""
    hint: bool = False
    """The answer may say who leads (KIP-951)."""
    check: bool = False
    """Ask the leader for the range of offsets before it is believed."""
    hint_text: str = ""
    """The way out, for the user."""


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
    # the broker has not heard of the newest election; metadata would only tell us the same again
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
    """What this error code leads to."""
    return RULES.get(code, _OTHERS)


@dataclass(frozen=True, slots=True)
class WholeReaction:
    """What to do when a broker refuses a whole Fetch. Whatever it is, the next request opens
    another session."""

    is_over: bool = False
    """The broker has no session of ours any more: there is none to be closed."""
    again: bool = False
    """The first time in a row the next request goes out at once; else the broker is left alone
    for a while, longer each time."""
    learn: bool = False
    """Ask for the leaders, and the ids, of all topics that were asked for."""
    warns: bool = True
    """It is logged."""
    stops: bool = False
    """When it comes again, its partitions stop and the user is told."""


WHOLE_RULES: Final[dict[int, WholeReaction]] = {
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND: WholeReaction(is_over=True, again=True, warns=False),
    ErrorCode.INVALID_FETCH_SESSION_EPOCH: WholeReaction(again=True, warns=False),
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR: WholeReaction(learn=True, warns=False),
    ErrorCode.UNSUPPORTED_VERSION: WholeReaction(stops=True),
    ErrorCode.INVALID_REQUEST: WholeReaction(stops=True),
}

_OTHER_WHOLES: Final = WholeReaction()


def reaction_to_whole(code: int) -> WholeReaction:
    """What this error code of a whole answer leads to."""
    return WHOLE_RULES.get(code, _OTHER_WHOLES)


def fetch_error(code: int, tp: TopicPartition, offset: int) -> Kip848Error:
    """What the user is told of a partition that stopped."""
    where = f"{shown(tp)} at offset {offset}"
    if code == ErrorCode.CORRUPT_MESSAGE:
        return RecordUnreadable(
            f"{where}: the broker cannot read its own log (CORRUPT_MESSAGE); "
            "mend the broker's disk, or seek past the damage",
            topic=tp[0],
            partition=tp[1],
            offset=offset,
        )
    hint = reaction(code).hint_text
    return broker_error(code, error_name(code), where, api="Fetch", hint=hint)
