"""The requests of a Connect worker."""

from __future__ import annotations

from typing import Final

from kip848_client.connect.core import ClassicWorkerSettings
from kip848_client.connect.core._error_rules import RULES, Reaction, reaction
from tools.docs.errors.columns import Column, Told

__all__ = ["COLUMNS"]

_SETTINGS: Final = ClassicWorkerSettings("http://a-worker/")
_SILENT_S: Final = _SETTINGS.of_link().unreachable_after_ms // 1000
_SILENT: Final = (
    f"nothing; what lasts {_SILENT_S} s is logged as `CoordinatorUnavailable`, again and again"
)
_STOP_MS: Final = f"{_SETTINGS.stop_after_ms:,} ms with the default settings"
_PAUSES: Final = (
    f"for ever, with pauses from {_SETTINGS.retry_backoff_ms} to {_SETTINGS.retry_backoff_max_ms} "
    f"ms; what runs goes on until its session is nearly over ({_STOP_MS})"
)

_VERDICTS: Final = {
    Reaction.RETRY: Told(
        "the same again, of the same coordinator; a round that was open begins again",
        _SILENT,
        _PAUSES,
    ),
    Reaction.REDISCOVER: Told(
        "the coordinator is looked up, then the same again; a round that was open begins again",
        _SILENT,
        _PAUSES,
    ),
    Reaction.TAKE_ID: Told(
        "it joins again with the id that the coordinator gave",
        "nothing",
        "at once; this is how every worker joins",
    ),
    Reaction.REJOIN: Told(
        "it joins again, and goes on with what runs",
        "nothing, unless the next round takes something away: `on_revoked`",
        "in the next round",
    ),
    Reaction.FENCE: Told(
        "everything is stopped as lost, and the worker joins as a new member",
        "`on_lost`",
        "for ever; when everything has stopped, and after a pause",
    ),
    Reaction.FATAL: Told(
        "the worker ends; what it ran is stopped as lost",
        "`on_lost`; `run()` raises the error, which names the way out",
        "at once; a new worker is the way on",
    ),
}


COLUMNS: Final = (
    Column(
        "Worker in a classic group",
        "JoinGroup, SyncGroup, Heartbeat and LeaveGroup of a Connect worker on the classic "
        "protocol. On the protocol of KIP-848 its ConnectGroupHeartbeat is judged as a "
        "ConsumerGroupHeartbeat is.",
        lambda code: reaction(code).name,
        {each.name: told for each, told in _VERDICTS.items()},
        RULES,
        "A leave that is refused with RETRY or REDISCOVER is asked again in its time "
        "(`stop(timeout_ms=...)`); FATAL ends it with the error; any other refusal says that it "
        "has reached its goal.",
    ),
)
