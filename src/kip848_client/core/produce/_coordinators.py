"""Finds the coordinator of a transactional id or a group, on demand.

A lookup that does not help is repeated, with a backoff that grows until the coordinator has served
a request: while coordinators move, a broker may name the same wrong one repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.produce._commands import Command, FindCoordinator
from kip848_client.core.produce._events import CoordinatorFound, CoordinatorNotFound
from kip848_client.core.produce._model import CoordinatorKind, ProduceSettings
from kip848_client.error_codes import ErrorCode, error_name, passes_in_lookup
from kip848_client.errors import Kip848Error, broker_error

__all__ = ["Coordinators", "Key"]

Key = tuple[CoordinatorKind, str]

_HINTS: Final[dict[int, str]] = {
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (
        "the principal needs DESCRIBE and WRITE on the transactional id"
    ),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "the principal needs READ on the group",
}


@dataclass(slots=True)
class _Coordinator:
    node: int | None = None
    wanted: bool = False
    open: int | None = None
    """The number of the lookup in flight."""
    failures: int = 0
    not_before_ms: int = 0
    trouble: str = "its coordinator is not known yet"


class Coordinators:
    """All coordinators that were ever needed. ``refused`` gets a key and the reason it has no
    coordinator for this client."""

    def __init__(
        self,
        settings: ProduceSettings,
        jitter: Jitter,
        emit: Callable[[Command], None],
        *,
        refused: Callable[[Key, Kip848Error], None],
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._emit = emit
        self._refused = refused
        self._by_key: dict[Key, _Coordinator] = {}
        self._number = 0
        self.stale = 0
        """Answers that were no longer expected."""

    def node(self, key: Key) -> int | None:
        """The coordinator, or ``None`` if ``settle`` must look it up first."""
        found = self._by_key.setdefault(key, _Coordinator())
        found.wanted = found.node is None
        return found.node

    def is_known(self, key: Key) -> bool:
        """Whether ``node`` would return a coordinator."""
        return key in self._by_key and self._by_key[key].node is not None

    def trouble(self, key: Key) -> str:
        """Why it is not known, for the error of a caller whose wait times out."""
        return self._by_key.setdefault(key, _Coordinator()).trouble

    def forget(self, key: Key, node: int, why: str) -> None:
        """Forget this broker: it is not the coordinator, or cannot be reached."""
        found = self._by_key[key]
        if found.node == node:
            found.node = None
            found.trouble = why

    def served(self, key: Key) -> None:
        """The coordinator has served a request, so the backoff starts again."""
        self._by_key[key].failures = 0

    def want_none(self) -> None:
        """Forget all demand. Callers must ask again before the next ``settle``."""
        for each in self._by_key.values():
            each.wanted = False

    def due_ms(self) -> int | None:
        """When ``settle`` has something to do."""
        due = [each.not_before_ms for each in self._by_key.values() if _is_to_ask(each)]
        return min(due, default=None)

    def settle(self, now_ms: int) -> None:
        """Send the lookups that are due."""
        for key, each in self._by_key.items():
            if not _is_to_ask(each) or now_ms < each.not_before_ms:
                continue
            self._number += 1
            each.open = self._number
            each.failures += 1
            each.not_before_ms = now_ms + self._pause_ms(each)
            self._emit(FindCoordinator(self._number, *key))

    def answered(self, now_ms: int, event: CoordinatorFound | CoordinatorNotFound) -> None:
        """A lookup has ended."""
        asked = [key for key, each in self._by_key.items() if each.open == event.number]
        if not asked:
            self.stale += 1
            return
        key = asked[0]
        each = self._by_key[key]
        each.open = None
        if isinstance(event, CoordinatorFound):
            each.node = event.node
            each.wanted = False
            return
        code = event.error_code
        each.trouble = f"FindCoordinator: {error_name(code)}: {event.why}" if code else event.why
        each.not_before_ms = now_ms + self._pause_ms(each)
        error = event.fatal
        if error is None and code and not passes_in_lookup(code):  # 0: no answer arrived
            hint = _HINTS.get(code, "")
            error = broker_error(
                code, error_name(code), event.why, api="FindCoordinator", hint=hint
            )
        if error is not None:
            each.wanted = False
            self._refused(key, error)

    def _pause_ms(self, each: _Coordinator) -> int:
        settings = self._settings
        return backoff_ms(
            max(0, each.failures - 1),
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._jitter,
        )


def _is_to_ask(each: _Coordinator) -> bool:
    return each.wanted and each.open is None
