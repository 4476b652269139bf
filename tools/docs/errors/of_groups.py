"""The requests of a group's member."""

from __future__ import annotations

from typing import Final

from kip848_client.core.fetch._error_rules import ANNOUNCED_AFTER_MS
from kip848_client.core.fetch._positions import RETRY_MS
from kip848_client.core.group import _error_rules as committed
from kip848_client.core.member import HeartbeatRefused, MemberSettings
from kip848_client.core.member import _error_rules as membership
from kip848_client.core.member._reports import REPORT_EVERY_MS
from kip848_client.core.offsets import _error_rules as commits
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_SETTINGS: Final = MemberSettings()
_PAUSES: Final = "for ever; pauses from `retry_backoff_ms` to `retry_backoff_max_ms`"
_SILENT: Final = (
    f"nothing; what lasts {_SETTINGS.unreachable_after_ms // 1000} s is logged as "
    "`CoordinatorUnavailable`, again and again"
)
_UNTIL: Final = (
    "`commit()`: `default_api_timeout_ms`; before partitions are given up: `max_poll_interval_ms`; "
    "automatic commits: not at all, the next one carries the offsets"
)
_LATE: Final = "nothing; when time is over, `CommitFailed` with `RequestTimedOut` as its cause"
_ASKED_UNTIL: Final = "`committed()`: `default_api_timeout_ms`; for positions: for ever"
_ASKED_LATE: Final = (
    "`committed()` raises `RequestTimedOut` when time is over; an answer that takes longer than "
    f"{ANNOUNCED_AFTER_MS // 1000} s is logged with its reason, once"
)


def _heartbeat(code: int) -> str:
    refused = HeartbeatRefused(code, error_name(code), None, retriable=is_retriable(code))
    first = membership.reaction(refused, member_epoch=0, may_hold_instance=False)
    again = membership.reaction(refused, member_epoch=0, may_hold_instance=True)
    member = membership.reaction(refused, member_epoch=7, may_hold_instance=True)
    word = first.name
    if again is not first:
        word += f"; who joins again: {again.name}"
    if member is not again:
        word += f"; who is a member: {member.name}"
    return word


_HEARTBEAT: Final = {
    membership.Reaction.RETRY: Told("the same coordinator is asked again", _SILENT, _PAUSES),
    membership.Reaction.REDISCOVER: Told(
        "the coordinator is looked up, and asked at once the first time", _SILENT, _PAUSES
    ),
    membership.Reaction.SURFACE: Told(
        "the member keeps what it has, and goes on asking",
        "the next call for records raises the error, which names the way out",
        f"told at most once in {REPORT_EVERY_MS // 1000} s; asked for ever, while the "
        "coordinator's session time-out runs",
    ),
    membership.Reaction.FENCE: Told(
        "everything is dropped as lost, nothing of it is committed, and the member joins again",
        "`on_partitions_lost`; a `commit()` of what is gone raises `CommitFailed`",
        "for ever; at once the first time, then with pauses up to "
        f"{_SETTINGS.rejoin_backoff_max_ms // 1000} s",
    ),
    membership.Reaction.COMPUTE: Told(
        "the member keeps its partitions, and computes the group's assignment (draft protocols)",
        "nothing",
        "the next heartbeat is sent soon, with all fields",
    ),
    membership.Reaction.WAIT_FOR_INSTANCE: Told(
        "our own session of before may hold the `group_instance_id`: the join is repeated",
        "nothing; then as FATAL",
        f"{_SETTINGS.unreleased_instance_limit_ms // 1000} s, with pauses up to "
        f"{_SETTINGS.rejoin_backoff_max_ms // 1000} s",
    ),
    membership.Reaction.FATAL: Told(
        "the member ends; what it had is dropped as lost",
        "`on_partitions_lost`; every call raises the error, which names the way out",
        "at once; a new consumer is the way on",
    ),
}

_LOOKUP: Final = {
    membership.Reaction.RETRY: Told("it is looked up again, of any broker", _SILENT, _PAUSES),
    membership.Reaction.SURFACE: Told(
        "the same",
        "the next call for records raises the error; `commit()` raises `CommitFailed` with it as "
        "its cause, `committed()` raises it",
        f"told at most once in {REPORT_EVERY_MS // 1000} s; looked up for ever, a commit ends",
    ),
}

_COMMIT: Final = {
    commits.Reaction.RETRY: Sees(_LATE, _UNTIL),
    commits.Reaction.REDISCOVER: Sees(_LATE, _UNTIL),
    commits.Reaction.NEXT_EPOCH: Sees(
        f"{_LATE}. Who is no member any more, or has given the partition up, gets `CommitFailed` "
        "at once: it never counts as stored",
        _UNTIL,
    ),
    commits.Reaction.TOPIC: Sees(
        _LATE,
        "`commit()`: `default_api_timeout_ms`; before partitions are given up, and automatic "
        "commits: not at all, a topic that was deleted holds nothing up",
    ),
    commits.Reaction.FAIL: Sees(
        "`commit()` raises `CommitFailed` with the broker's error as its cause; that an automatic "
        "commit failed is logged",
        "at once; automatic commits try again after `auto_commit_interval_ms`",
    ),
}

_COMMITTED: Final = {
    committed.Reaction.RETRY: Sees(_ASKED_LATE, _ASKED_UNTIL),
    committed.Reaction.REDISCOVER: Sees(_ASKED_LATE, _ASKED_UNTIL),
    committed.Reaction.NEXT_EPOCH: Sees(
        f"{_ASKED_LATE}; of one that was asked without a membership `committed()` raises the error",
        _ASKED_UNTIL,
    ),
    committed.Reaction.TOPIC: Sees(
        "`committed()` leaves the partition out when time is over",
        _ASKED_UNTIL,
    ),
    committed.Reaction.FAIL: Sees(
        "`committed()` raises the error; for positions the next call for records does",
        f"`committed()`: at once; for positions it is asked again each {RETRY_MS // 1000} s",
    ),
}

_GONE: Final = ", ".join(sorted(ErrorCode(each).name for each in membership.LEFT_ANYWAY))

COLUMNS: Final = (
    Column(
        "ConsumerGroupHeartbeat",
        "Of joining, of heartbeats, and of leaving.",
        _heartbeat,
        {each.name: told for each, told in _HEARTBEAT.items()},
        (*membership.RULES, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNRELEASED_INSTANCE_ID),
        f"A leave that is refused by {_GONE} has reached its goal. Other refusals of a leave are "
        "asked again in its time (`stop(timeout_ms=...)`).",
    ),
    Column(
        "FindCoordinator (consumer)",
        "Before heartbeats, commits and look-ups of committed offsets.",
        lambda code: membership.lookup_reaction(code).name,
        {each.name: told for each, told in _LOOKUP.items()},
        (),
    ),
    Column(
        "OffsetCommit",
        "Of `commit()`, of automatic commits, and of the one before partitions are given up.",
        lambda code: commits.reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _COMMIT.items()},
        commits.RULES,
    ),
    Column(
        "OffsetFetch",
        'Of `committed()`, and where reading begins. No error ever counts as "nothing '
        'committed": `auto_offset_reset` decides only when the broker says that without an error.',
        lambda code: committed.reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _COMMITTED.items()},
        committed.RULES,
    ),
)
