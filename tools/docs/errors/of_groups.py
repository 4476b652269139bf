"""The requests of a group's member."""

from __future__ import annotations

from typing import Final

from kip848_client.core.fetch._error_rules import ANNOUNCED_AFTER_MS
from kip848_client.core.fetch._positions import RETRY_MS
from kip848_client.core.group import _error_rules as committed
from kip848_client.core.member import HeartbeatRefused, MemberSettings
from kip848_client.core.member import _error_rules as membership
from kip848_client.core.member._limits import REPORT_EVERY_MS
from kip848_client.core.offsets import _error_rules as commits
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_SETTINGS: Final = MemberSettings()
_PAUSES: Final = "without limit; pauses from `retry_backoff_ms` to `retry_backoff_max_ms`"
_SILENT: Final = (
    f"nothing; after {_SETTINGS.unreachable_after_ms // 1000} s `CoordinatorUnavailable` is "
    "logged, repeatedly"
)
_UNTIL: Final = (
    "`commit()`: `default_api_timeout_ms`; before a revocation: `max_poll_interval_ms`; automatic "
    "commits: no retry, the next one has the offsets"
)
_LATE: Final = "nothing; after the timeout, `CommitFailed` with `RequestTimedOut` as its cause"
_ASKED_UNTIL: Final = "`committed()`: `default_api_timeout_ms`; for positions: without limit"
_ASKED_LATE: Final = (
    "`committed()` raises `RequestTimedOut` after the timeout; a wait of more than "
    f"{ANNOUNCED_AFTER_MS // 1000} s is logged once, with the reason"
)


def _heartbeat(code: int) -> str:
    refused = HeartbeatRefused(code, error_name(code), None, retriable=is_retriable(code))
    first = membership.reaction(refused, member_epoch=0, may_hold_instance=False)
    again = membership.reaction(refused, member_epoch=0, may_hold_instance=True)
    member = membership.reaction(refused, member_epoch=7, may_hold_instance=True)
    word = first.name
    if again is not first:
        word += f"; when rejoining: {again.name}"
    if member is not again:
        word += f"; as a member: {member.name}"
    return word


_HEARTBEAT: Final = {
    membership.Reaction.RETRY: Told(
        "the request is sent again to the same coordinator", _SILENT, _PAUSES
    ),
    membership.Reaction.REDISCOVER: Told(
        "the coordinator is looked up, and gets the request again, the first time at once",
        _SILENT,
        _PAUSES,
    ),
    membership.Reaction.SURFACE: Told(
        "the member keeps its partitions and keeps retrying",
        "the next call for records raises the error, which names the remedy",
        f"raised at most once per {REPORT_EVERY_MS // 1000} s; retried without limit, while the "
        "coordinator's session timeout runs",
    ),
    membership.Reaction.FENCE: Told(
        "all partitions are lost, nothing is committed, and the member joins again",
        "`on_partitions_lost`; a `commit()` of lost partitions raises `CommitFailed`",
        "without limit; at once the first time, then with pauses up to "
        f"{_SETTINGS.rejoin_backoff_max_ms // 1000} s",
    ),
    membership.Reaction.COMPUTE: Told(
        "the member keeps its partitions, and computes the group's assignment (draft protocols)",
        "nothing",
        "the next heartbeat is sent soon, with all fields",
    ),
    membership.Reaction.WAIT_FOR_INSTANCE: Told(
        "this client's previous session may still hold the `group_instance_id`: the join is "
        "repeated",
        "nothing; then as FATAL",
        f"{_SETTINGS.unreleased_instance_limit_ms // 1000} s, with pauses up to "
        f"{_SETTINGS.rejoin_backoff_max_ms // 1000} s",
    ),
    membership.Reaction.FATAL: Told(
        "the member ends; its partitions are lost",
        "`on_partitions_lost`; every call raises the error, which names the remedy",
        "at once; create a new consumer",
    ),
}

_LOOKUP: Final = {
    membership.Reaction.RETRY: Told("the lookup is repeated, on any broker", _SILENT, _PAUSES),
    membership.Reaction.SURFACE: Told(
        "the same",
        "the next call for records raises the error; `commit()` raises `CommitFailed` with it as "
        "its cause, `committed()` raises it",
        f"raised at most once per {REPORT_EVERY_MS // 1000} s; looked up without limit; a commit "
        "ends",
    ),
}

_COMMIT: Final = {
    commits.Reaction.RETRY: Sees(_LATE, _UNTIL),
    commits.Reaction.REDISCOVER: Sees(_LATE, _UNTIL),
    commits.Reaction.NEXT_EPOCH: Sees(
        f"{_LATE}. If the client is no longer a member, or has given up the partition, "
        "`CommitFailed` at once: it never counts as stored",
        _UNTIL,
    ),
    commits.Reaction.TOPIC: Sees(
        _LATE,
        "`commit()`: `default_api_timeout_ms`; before a revocation, and automatic commits: no "
        "retry, because a deleted topic must not delay anything",
    ),
    commits.Reaction.FAIL: Sees(
        "`commit()` raises `CommitFailed` with the broker's error as its cause; a failed automatic "
        "commit is logged",
        "at once; automatic commits retry after `auto_commit_interval_ms`",
    ),
}

_COMMITTED: Final = {
    committed.Reaction.RETRY: Sees(_ASKED_LATE, _ASKED_UNTIL),
    committed.Reaction.REDISCOVER: Sees(_ASKED_LATE, _ASKED_UNTIL),
    committed.Reaction.NEXT_EPOCH: Sees(
        f"{_ASKED_LATE}; without a membership `committed()` raises the error",
        _ASKED_UNTIL,
    ),
    committed.Reaction.TOPIC: Sees(
        "`committed()` omits the partition after the timeout",
        _ASKED_UNTIL,
    ),
    committed.Reaction.FAIL: Sees(
        "`committed()` raises the error; for positions, the next call for records raises it",
        f"`committed()`: at once; for positions it is retried every {RETRY_MS // 1000} s",
    ),
}

_GONE: Final = ", ".join(sorted(ErrorCode(each).name for each in membership.LEFT_ANYWAY))

COLUMNS: Final = (
    Column(
        "ConsumerGroupHeartbeat",
        "For joins, heartbeats, and leaves.",
        _heartbeat,
        {each.name: told for each, told in _HEARTBEAT.items()},
        (*membership.RULES, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNRELEASED_INSTANCE_ID),
        f"A leave that is refused with {_GONE} counts as success. After other errors a leave is "
        "retried until its timeout (`stop(timeout_ms=...)`).",
    ),
    Column(
        "FindCoordinator (consumer)",
        "Before heartbeats, commits and requests for committed offsets.",
        lambda code: membership.lookup_reaction(code).name,
        {each.name: told for each, told in _LOOKUP.items()},
        (),
    ),
    Column(
        "OffsetCommit",
        "For `commit()`, automatic commits, and the commit before a revocation.",
        lambda code: commits.reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _COMMIT.items()},
        commits.RULES,
    ),
    Column(
        "OffsetFetch",
        'For `committed()` and for start positions. No error ever counts as "nothing committed": '
        "`auto_offset_reset` applies only if the broker returns no offset and no error.",
        lambda code: committed.reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _COMMITTED.items()},
        committed.RULES,
    ),
)
