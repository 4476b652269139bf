"""Which broker to ask about which targets, repeated until each target has an answer or an error.

A *target* is a group or a partition: one broker is responsible for it (the group's coordinator, the
partition's leader), which has to be found first and may change. The driver performs the steps:

1. ``to_find``: the targets whose broker is not known; it looks for them (``found``, ``refused``).
2. ``asks``: what to ask each broker; it asks (``answered``, ``refused``, ``lost``).
3. ``is_over``; otherwise a pause, and again. When the time is up: ``give_up``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import islice
from typing import Final, Generic, TypeVar

from kip848_client.core.ports import NotSent
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error, RequestTimedOut, refusal

__all__ = [
    "ANYONE",
    "LATER",
    "LOOK_UP_AGAIN",
    "DeadlineExceeded",
    "Refusal",
    "Rounds",
    "refusal",
    "refusal_if_any",
]

T = TypeVar("T", bound=Hashable)
R = TypeVar("R")

ANYONE: Final = -1
"""Used instead of a node id: any broker can answer."""

Refusal = BrokerError
"""A broker's error answer."""

LOOK_UP_AGAIN: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""The broker is not, or no longer, responsible."""

LATER: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
"""The broker is the right one and cannot answer yet."""


class DeadlineExceeded(RequestTimedOut):
    """The call's own deadline has passed."""


def refusal_if_any(code: int, message: str | None, api: str) -> BrokerError | None:
    """Return the error for a code; ``None`` for success."""
    return refusal(code, message, api) if code else None


class Rounds(Generic[T, R]):
    """See the module. Nothing here waits or sends."""

    def __init__(
        self,
        targets: Iterable[T],
        done_before: Mapping[int, R] | None = None,
        not_there_yet: frozenset[int] = frozenset(),
    ) -> None:
        """``done_before``: results by codes that mean success if the answer to an earlier attempt
        was lost: that attempt made the change. ``not_there_yet``: codes of brokers that may not
        know a target yet; it is looked up again, and the look-up shows whether it exists at all."""
        self._node_of: dict[T, int | None] = dict.fromkeys(targets)
        self._not_there_yet = not_there_yet
        self._done_before = done_before or {}
        self._in_doubt: set[T] = set()
        self._last: dict[T, Kip848Error] = {}
        self.done: Final[dict[T, R]] = {}
        self.failed: Final[dict[T, Kip848Error]] = {}

    @property
    def is_over(self) -> bool:
        """Whether each target has its answer or its error."""
        return not self._node_of

    def to_find(self) -> tuple[T, ...]:
        """The targets whose broker is not known."""
        return tuple(target for target, node in self._node_of.items() if node is None)

    def waits(self) -> dict[T, str]:
        """The first target without an answer, and the reason. The others mostly wait for the same,
        and are not worth a line each."""
        return {target: self._why(target) for target in islice(self._node_of, 1)}

    def _why(self, target: T) -> str:
        node = self._node_of[target]
        if target in self._last:
            return str(self._last[target])
        if node is None:
            return "no broker has said yet which broker is responsible"
        return "no broker has answered" if node == ANYONE else f"broker {node} has not answered"

    def asks(self) -> dict[int, tuple[T, ...]]:
        """Return the targets to ask for, by node id."""
        by_node: dict[int, list[T]] = {}
        for target, node in self._node_of.items():
            if node is not None:
                by_node.setdefault(node, []).append(target)
        return {node: tuple(targets) for node, targets in by_node.items()}

    def found(self, target: T, node: int) -> None:
        """Set the broker responsible for a target."""
        if target in self._node_of:
            self._node_of[target] = node

    def answered(self, answers: Mapping[T, R | Refusal], asked: Iterable[T], api: str) -> None:
        """Process a broker's answers for some targets."""
        for target in asked:
            if target not in self._node_of:
                continue
            if target not in answers:
                self._fail(target, Kip848Error(f"{api}: the answer says nothing about {target!r}"))
                continue
            answer = answers[target]
            if isinstance(answer, BrokerError) and answer.code in self._not_there_yet:
                self._last[target] = answer
                self._node_of[target] = None
            elif isinstance(answer, BrokerError):
                self.refused(target, answer)
            else:
                self._succeed(target, answer)

    def refused(self, target: T, error: Refusal) -> None:
        """Process a refusal of a target: permanent, temporary, or because another broker has it."""
        if target not in self._node_of:
            return
        self._last[target] = error
        if error.code == ErrorCode.REQUEST_TIMED_OUT:
            self._in_doubt.add(target)
        if error.code in LOOK_UP_AGAIN:
            self._node_of[target] = None
        elif target in self._in_doubt and error.code in self._done_before:
            self._succeed(target, self._done_before[error.code])
        elif error.code not in LATER:
            self._fail(target, error)

    def not_found(self, targets: Iterable[T], error: Kip848Error) -> None:
        """Note that the responsible broker could not be looked up: these targets were not
        requested."""
        for target in targets:
            if target in self._node_of:
                self._note(target, error)

    def lost(self, targets: Iterable[T], error: Kip848Error) -> None:
        """Handle a broker that could not be reached, or a broken connection: another one may have
        its targets now."""
        for target in targets:
            if target in self._node_of:
                self._note(target, error)
                self._node_of[target] = None
                if not isinstance(error, NotSent):
                    self._in_doubt.add(target)

    def fail(self, targets: Iterable[T], error: Kip848Error) -> None:
        """Fail targets with a permanent error."""
        for target in targets:
            if target in self._node_of:
                self._fail(target, error)

    def give_up(self, error: Callable[[T, Kip848Error | None], Kip848Error]) -> None:
        """At the deadline, fail all remaining targets: ``error`` builds the exception from a target
        and its last error."""
        for target in tuple(self._node_of):
            self._fail(target, error(target, self._last.get(target)))

    def _note(self, target: T, error: Kip848Error) -> None:
        """Keep the last error, unless the new one only reports the deadline."""
        if not isinstance(error, DeadlineExceeded) or target not in self._last:
            self._last[target] = error

    def _succeed(self, target: T, result: R) -> None:
        self.done[target] = result
        del self._node_of[target]

    def _fail(self, target: T, error: Kip848Error) -> None:
        self.failed[target] = error
        del self._node_of[target]
