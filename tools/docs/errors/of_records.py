"""The requests that read records."""

from __future__ import annotations

from typing import Final

from kip848_client.core.fetch._error_rules import (
    ANNOUNCED_AFTER_MS,
    QUIET_MS,
    RULES,
    WHOLE_RULES,
    Reaction,
    WholeReaction,
    reaction,
    reaction_to_whole,
)
from kip848_client.core.fetch._partition_errors import AGAIN_MS
from kip848_client.core.fetch._positions import RETRY_MS
from kip848_client.core.fetch._queries import REMEDIES, Remedy, remedy_for
from kip848_client.error_codes import ErrorCode
from tools.docs.errors.columns import Column, Told

__all__ = ["COLUMNS"]

_REST: Final = "pauses from `retry_backoff_ms` to `retry_backoff_max_ms`"
_QUIET: Final = f"nothing; logged after {QUIET_MS // 1000} s"
_STOPPED: Final = (
    "the next call for records raises the error, after all records fetched before it were "
    "returned; other partitions continue"
)
_AGAIN: Final = f"after that, the partition is tried again every {AGAIN_MS // 1000} s"


def _word(rule: Reaction) -> str:
    if rule.check:
        return "CHECK"
    if rule.tries is not None:
        return "STOP" if rule.tries == 0 else f"STOP AFTER {rule.tries}"
    if rule.learn:
        learn = "FOLLOW" if rule.hint else "LEARN"
        return f"{learn} LATE" if rule.learn_after_ms else learn
    return "REST"


def _told(rule: Reaction) -> Told:
    what = "the partition is fetched again after a backoff"
    sees, bounds = _QUIET, f"without limit; {_REST}"
    if rule.check:
        return Told(
            "the range of the leader's log is requested to check the answer",
            "nothing if the position is in the range; otherwise the reset by `auto_offset_reset` "
            "is logged, or the next call for records raises `OffsetOutOfRange` or `LogTruncated`",
            "as for ListOffsets",
        )
    if rule.hint:
        what = "a leader that the answer names gets the fetch at once; otherwise "
        what += "the partition is fetched again after a backoff, from the leader in the metadata"
    elif rule.learn:
        what += ", from the leader in the metadata"
    if rule.learn_after_ms:
        what += (
            f", which is requested after {rule.learn_after_ms // 1000} s, and accepted after "
            f"{(rule.doubt_after_ms or 0) // 1000} s even if it seems older"
        )
    if rule.tries is not None:
        sees = _STOPPED
        what = "the partition stops"
        bounds = f"at once; {_AGAIN}"
        if rule.tries:
            times = "once" if rule.tries == 1 else f"{rule.tries} times"
            what = f"it is fetched again {times}, then the partition stops"
            bounds = f"{_REST}; {_AGAIN}"
    return Told(what, sees, bounds)


def _whole_word(rule: WholeReaction) -> str:
    if rule.stops:
        return "STOP ALL"
    if rule.learn:
        return "REOPEN, LEARN"
    return "REOPEN, REST" if not rule.again else "REOPEN"


def _whole_told(rule: WholeReaction) -> Told:
    what = "a new session is opened"
    what += ", at once the first time" if rule.again else ", after a backoff"
    what += "; the ids and leaders of its topics are requested" if rule.learn else ""
    sees = "logged once" if rule.warns else "nothing"
    bounds = f"without limit; {_REST}"
    if rule.stops:
        what += "; when it happens again, all partitions of this broker stop"
        sees += "; then the next call for records raises the error"
        bounds = f"{_REST}; {_AGAIN}"
    return Told(what, sees, bounds)


def _remedy_word(remedy: Remedy) -> str:
    if remedy.tries is not None:
        return "FAIL" if remedy.tries == 1 else f"FAIL AFTER {remedy.tries}"
    if remedy.metadata_after_ms is None:
        return "REST"
    return "LEARN LATE" if remedy.metadata_after_ms else "LEARN"


def _remedy_told(remedy: Remedy) -> Told:
    sees = (
        "`offsets_for_times()` etc. raise `RequestTimedOut` after the timeout; a position "
        f"that is not found for {ANNOUNCED_AFTER_MS // 1000} s is logged"
    )
    bounds = "such calls: `default_api_timeout_ms`; for positions: without limit"
    what = "the request is retried after a backoff"
    if remedy.metadata_after_ms is not None:
        what += ", at the leader in the metadata"
    if remedy.metadata_after_ms:
        what += (
            f", which is requested after {remedy.metadata_after_ms // 1000} s, and accepted after "
            f"{(remedy.doubt_after_ms or 0) // 1000} s even if it seems older"
        )
    if remedy.tries is not None:
        sees = "such calls raise the error; for positions, the next call for records raises it"
        what = "the lookup ends"
        if remedy.tries > 1:
            what = f"after {remedy.tries} of them in a row {what}"
        bounds = f"{_REST}; for positions it is retried every {RETRY_MS // 1000} s"
    return Told(what, sees, bounds)


_CODES: Final = [code for code in ErrorCode if code is not ErrorCode.NONE]

COLUMNS: Final = (
    Column(
        "Fetch (a partition)",
        "For one partition in an answer. If it came from a follower, any error makes the client go "
        "back to the leader.",
        lambda code: _word(reaction(code)),
        {_word(rule): _told(rule) for rule in map(reaction, _CODES)},
        RULES,
        "CORRUPT_MESSAGE is raised as `RecordUnreadable`, with the offset to seek past.",
    ),
    Column(
        "Fetch (whole)",
        "For a whole answer. Partitions keep their positions.",
        lambda code: _whole_word(reaction_to_whole(code)),
        {_whole_word(rule): _whole_told(rule) for rule in map(reaction_to_whole, _CODES)},
        WHOLE_RULES,
    ),
    Column(
        "ListOffsets",
        "For resets, range checks, `offsets_for_times()`, `beginning_offsets()` and "
        "`end_offsets()`.",
        lambda code: _remedy_word(remedy_for(code)),
        {_remedy_word(each): _remedy_told(each) for each in map(remedy_for, _CODES)},
        REMEDIES,
    ),
)
