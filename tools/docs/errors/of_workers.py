"""The requests of a Connect worker."""

from __future__ import annotations

from typing import Final

from kip848_client.connect.core import ClassicWorkerSettings
from kip848_client.connect.core._error_rules import RULES, Reaction, reaction
from tools.docs.errors.columns import Column, Told

__all__ = ["COLUMNS"]

_SETTINGS: Final = ClassicWorkerSettings("http://a-worker/")
_SILENT_S: Final = _SETTINGS.of_link().unreachable_after_ms // 1000
_SILENT: Final = f"nothing; after {_SILENT_S} s `CoordinatorUnavailable` is logged, repeatedly"
_STOP_MS: Final = f"{_SETTINGS.stop_after_ms:,} ms with the default settings"
_PAUSES: Final = (
    f"without limit, with pauses from {_SETTINGS.retry_backoff_ms} to "
    f"{_SETTINGS.retry_backoff_max_ms} ms; items keep running until the session has nearly ended "
    f"({_STOP_MS})"
)

_VERDICTS: Final = {
    Reaction.RETRY: Told(
        "the request is sent again to the same coordinator; an open round begins again",
        _SILENT,
        _PAUSES,
    ),
    Reaction.REDISCOVER: Told(
        "the coordinator is looked up and gets the request again; an open round begins again",
        _SILENT,
        _PAUSES,
    ),
    Reaction.TAKE_ID: Told(
        "it joins again with the id from the coordinator",
        "nothing",
        "at once; this is how every worker joins",
    ),
    Reaction.REJOIN: Told(
        "it joins again, and its items keep running",
        "nothing, unless the next round revokes items: `on_revoked`",
        "in the next round",
    ),
    Reaction.FENCE: Told(
        "all items are stopped as lost, and the worker joins as a new member",
        "`on_lost`",
        "without limit; after all items have stopped, and after a pause",
    ),
    Reaction.FATAL: Told(
        "the worker ends; its items are stopped as lost",
        "`on_lost`; `run()` raises the error, which names the remedy",
        "at once; create a new worker",
    ),
}


COLUMNS: Final = (
    Column(
        "Worker in a classic group",
        "JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a Connect worker on the classic "
        "protocol. On KIP-848, the errors of ConnectGroupHeartbeat are handled as those of "
        "ConsumerGroupHeartbeat.",
        lambda code: reaction(code).name,
        {each.name: told for each, told in _VERDICTS.items()},
        RULES,
        "A leave that is refused with RETRY or REDISCOVER is retried until its timeout "
        "(`stop(timeout_ms=...)`); FATAL ends it with the error; any other refusal counts as "
        "success.",
    ),
)
