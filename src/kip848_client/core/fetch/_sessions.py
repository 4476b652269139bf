"""The fetch session with one broker (KIP-227), client side.

Theory of operation
===================

A broker remembers what a client wants to fetch, so that a request names only the changes. Both
sides count requests with the session epoch. ``plan`` takes everything that is wanted now, or
``plan_changes`` what has changed, and returns the difference from what the broker knows;
``on_answer`` processes the answer, ``lost`` the lack of one. In between nothing may be planned: one
request per broker is in flight.

What the epoch in a request means:

- (0, 0): full request; open a session.
- (id, 0): the same, and close that session first.
- (id, n): incremental request; n counts from 1, and 1 follows 2^31-1.
- (0, -1): full request without a session.

The broker increments its epoch when it *accepts* a request. So after a request whose answer was
lost its epoch is unknown, and the session is closed and reopened: (id, 0). A session error cannot
lose a record, because the client owns the offsets.

What must be avoided:

- A partition that is no longer wanted must be forgotten in the next request: otherwise every answer
  would include its data.
- A broker closes a session whose last partition is forgotten. So when nothing is wanted, nothing is
  sent (KAFKA-17182).
- Forgetting a topic by the zero id makes brokers before 4.3 fail the whole request. So a partition
  is forgotten by the id by which it was added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kip848_client.core.fetch._error_rules import reaction_to_whole
from kip848_client.core.fetch._model import FetchAnswer, PartitionAnswer, Wanted
from kip848_client.core.types import ZERO_TOPIC_ID, TopicIdPartition, format_topic_id
from kip848_client.error_codes import default_message, error_name
from kip848_client.errors import LocalProtocolError

__all__ = ["AnswerEffect", "Difference", "FetchSession", "SessionSnapshot"]

_NO_SESSION: Final = 0
_FULL: Final = 0
"""Session epoch of a request that names everything and opens a session."""
_SESSIONLESS: Final = -1
_FIRST_EPOCH: Final = 1
_LAST_EPOCH: Final = 0x7FFFFFFF
_ASK_FOR_A_SESSION_EVERY_MS: Final = 30_000
"""How often to request a session while the broker's session cache is full."""


class Difference(NamedTuple):
    """The session and partition fields of a request."""

    session_id: int
    session_epoch: int
    add: tuple[Wanted, ...]
    """New or changed partitions, in the requested order."""
    forget: tuple[TopicIdPartition, ...]


@dataclass(frozen=True, slots=True)
class AnswerEffect:
    """The effect of an answer on the session, and what the core must do."""

    usable: bool
    """Whether its partition rows may be used. If not, the whole answer is void."""
    rest: bool = False
    """Whether the broker must rest for a while, longer each time in a row."""
    learn_leaders: bool = False
    """Whether to request metadata."""
    warning: str | None = None
    """A warning to log. The same one is not repeated before a valid answer."""
    failures: int = 0
    """How many answers in a row were unusable, including this one."""
    asked: Mapping[TopicIdPartition, Wanted] = field(default_factory=dict)
    """What this answer is about: everything that the broker was asked for. The records of a
    partition begin at the offset here, if that is still the wanted one. Read it before planning the
    next request, which changes it."""


@dataclass(frozen=True, slots=True)
class SessionSnapshot:
    """A session at one moment, for tests and checkers.

    The broker's session is ``known`` if it expects ``epoch``. If a request is in flight and the
    broker has accepted it, the session is ``asked`` and it expects the following epoch.
    """

    session_id: int
    """0 if there is none."""
    epoch: int
    """Epoch of the next request, or of the one in flight; 0 opens a session."""
    known: Mapping[TopicIdPartition, Wanted] | None
    """The broker's session; ``None`` if it cannot be known."""
    asked: Mapping[TopicIdPartition, Wanted] | None
    """The session after the request in flight; ``None`` if there is none."""


class FetchSession:
    """The session with one broker; ``node`` is its id, for messages."""

    def __init__(self, node: int) -> None:
        self._node: Final = node
        self._session_id = _NO_SESSION
        self._epoch = _FULL
        self._known: dict[TopicIdPartition, Wanted] = {}
        self._open: Difference | None = None
        """The request in flight."""
        self._asked: dict[TopicIdPartition, Wanted] = {}
        """The broker's session once it has accepted that request."""
        self._before: dict[TopicIdPartition, Wanted | None] = {}
        """The previous state of the partitions changed by that request."""
        self._ask_again_ms: int | None = None
        """Do not request a session before this time, because the broker's cache is full; ``None``:
        no limit."""
        self._failures = 0
        self._warned: set[str] = set()

    # -- requests --------------------------------------------------------------------------------

    @property
    def begins_anew(self) -> bool:
        """Whether the next request is a full one, independent of changes."""
        return self._epoch == _FULL

    def plan(self, now_ms: int, wanted: Mapping[TopicIdPartition, Wanted]) -> Difference | None:
        """What to send so that the broker fetches exactly ``wanted``, in this order in a full
        request. ``None``: nothing is wanted, so nothing must be sent. See ``plan_changes``."""
        if not wanted:
            return None
        changes: dict[TopicIdPartition, Wanted | None] = dict(wanted)
        changes.update((key, None) for key in self._known if key not in wanted)
        return self.plan_changes(now_ms, changes, wanted.values)

    def plan_changes(
        self,
        now_ms: int,
        changes: Mapping[TopicIdPartition, Wanted | None],
        everything: Callable[[], Iterable[Wanted]],
    ) -> Difference:
        """What to send when only ``changes`` may differ from the broker's session; ``None`` for
        partitions that are no longer wanted. The cost does not grow with unchanged partitions.
        ``everything`` is called for a full request; if nothing is wanted at all, nothing must be
        sent.

        The request counts as sent from here on; ``on_answer`` or ``lost`` ends it. Raises
        ``LocalProtocolError``, with nothing changed, while another one is in flight, and for a
        partition without a topic id.
        """
        if self._open is not None:
            raise LocalProtocolError(
                f"a Fetch to broker {self._node} is under way; wait for its end"
            )
        known = self._known
        full = self._epoch == _FULL
        if full:
            add = tuple(everything())
            forget: tuple[TopicIdPartition, ...] = ()
        else:
            differs = [(key, want) for key, want in changes.items() if known.get(key) != want]
            add = tuple([want for _, want in differs if want is not None])
            forget = tuple([key for key, want in differs if want is None])
        for want in add:
            if want.topic_id == ZERO_TOPIC_ID:
                raise LocalProtocolError(
                    f"partition {want.partition} has no topic id; learn it from metadata first"
                )
        if full:
            self._asked = {want.key: want for want in add}
            no_room = self._ask_again_ms is not None and now_ms < self._ask_again_ms
            epoch = _SESSIONLESS if no_room else _FULL
            self._open = Difference(self._session_id, epoch, add, ())
        else:
            self._ask(add, forget)
            self._open = Difference(self._session_id, self._epoch, add, forget)
        return self._open

    def _ask(self, add: tuple[Wanted, ...], forget: tuple[TopicIdPartition, ...]) -> None:
        """Apply the request to the known session, and remember how to undo it."""
        known = self._asked = self._known
        for key in forget:
            self._before[key] = known.pop(key)
        for want in add:
            self._before[want.key] = known.get(want.key)
            known[want.key] = want

    # -- their ends ------------------------------------------------------------------------------

    def on_answer(self, now_ms: int, answer: FetchAnswer) -> AnswerEffect:
        """Process the broker's answer. Raises ``LocalProtocolError`` if there was no request."""
        sent = self._ended()
        if answer.error_code:
            return self._refused(sent, answer.error_code)
        full = sent.session_epoch <= _FULL
        # A throttling broker answers a full request with nothing at all (KIP-219) and creates no
        # session. That does not mean that its session cache is full.
        held_back = answer.throttle_time_ms > 0 and not answer.partitions
        wrong = self._breach(sent, answer, full=full and not held_back)
        if wrong is not None:
            return self._broken(sent, answer, wrong)
        if full:
            self._opened(now_ms, sent, answer, held_back=held_back)
        elif answer.session_id == _NO_SESSION:
            # the broker closed the session after this answer, which is valid
            self._reset(_NO_SESSION)
        else:
            self._epoch = _after(sent.session_epoch)
            self._known = self._asked
        asked, self._asked = self._asked, {}
        self._failures = 0
        self._warned.clear()
        return AnswerEffect(usable=True, asked=asked)

    def lost(self, *, sent: bool = True) -> None:
        """Handle a request without an answer. ``sent``: the broker may have acted on it. Raises
        ``LocalProtocolError`` if none is in flight."""
        before = self._before_open()
        self._ended()
        self._asked = {}
        self._known = before
        if sent:
            self._reset(self._session_id)

    def close(self) -> int | None:
        """Reset the session, whatever is in flight; returns the id of the session to close at the
        broker, if there is one."""
        session_id = self._session_id
        self._open = None
        self._asked = {}
        self._before.clear()
        self._reset(_NO_SESSION)
        return session_id or None

    def snapshot(self) -> SessionSnapshot:
        """The state that both sides should agree on."""
        asked = None if self._open is None else dict(self._asked)
        epoch = self._epoch if self._open is None else self._open.session_epoch
        in_doubt = self._session_id != _NO_SESSION and self._epoch == _FULL
        return SessionSnapshot(
            self._session_id, epoch, None if in_doubt else self._before_open(), asked
        )

    def _before_open(self) -> dict[TopicIdPartition, Wanted]:
        """The broker's session if it has not accepted the request in flight."""
        known = dict(self._known)
        for key, want in self._before.items():
            if want is None:
                del known[key]
            else:
                known[key] = want
        return known

    # -- effects of answers ----------------------------------------------------------------------

    def _ended(self) -> Difference:
        sent = self._open
        if sent is None:
            raise LocalProtocolError(f"no Fetch to broker {self._node} is under way")
        self._open = None
        self._before.clear()
        return sent

    def _reset(self, session_id: int) -> None:
        """Make the next request a full one, which also closes this session if there is one."""
        self._session_id = session_id
        self._epoch = _FULL
        self._known = {}

    def _opened(
        self, now_ms: int, sent: Difference, answer: FetchAnswer, *, held_back: bool
    ) -> None:
        self._reset(_NO_SESSION)
        if sent.session_epoch == _SESSIONLESS:
            return
        if answer.session_id > _NO_SESSION:
            self._session_id = answer.session_id
            self._epoch = _FIRST_EPOCH
            self._known = self._asked
            self._ask_again_ms = None
        elif not held_back:
            self._ask_again_ms = now_ms + _ASK_FOR_A_SESSION_EVERY_MS

    def _refused(self, sent: Difference, code: int) -> AnswerEffect:
        """Handle a top-level error. Its session id means nothing: it may be set, or 0 for a live
        session. A session that this request was to close is not named again: it is closed, or it is
        the cause of the error."""
        self._failures += 1
        self._asked = {}
        rule = reaction_to_whole(code)
        over = rule.is_over or sent.session_epoch <= _FULL
        self._reset(_NO_SESSION if over else self._session_id)
        if not rule.warns:
            return AnswerEffect(
                usable=False,
                rest=not rule.again or self._failures > 1,
                learn_leaders=rule.learn,
                failures=self._failures,
            )
        return self._warn(
            f"broker {self._node} refused a Fetch: {error_name(code)} ({default_message(code)})"
        )

    def _broken(self, sent: Difference, answer: FetchAnswer, wrong: str) -> AnswerEffect:
        self._failures += 1
        self._asked = {}
        opened = sent.session_epoch == _FULL and answer.session_id > _NO_SESSION
        self._reset(answer.session_id if opened else self._session_id)
        return self._warn(
            f"broker {self._node} broke the Fetch protocol: {wrong}; the answer is dropped"
        )

    def _warn(self, text: str) -> AnswerEffect:
        known = text in self._warned
        self._warned.add(text)
        return AnswerEffect(
            usable=False,
            rest=True,
            warning=None if known else f"{text}. Asking again, with pauses.",
            failures=self._failures,
        )

    def _breach(self, sent: Difference, answer: FetchAnswer, *, full: bool) -> str | None:
        """Describe a protocol violation in the answer, if any. ``full``: it must include each
        requested partition."""
        if sent.session_epoch > _FULL and answer.session_id not in (_NO_SESSION, sent.session_id):
            return f"session {answer.session_id} answered in session {sent.session_id}"
        partitions = answer.partitions
        told = {each.key for each in partitions}
        if len(told) != len(partitions):
            return "a partition is in the answer twice"
        if not told <= self._asked.keys():
            return f"{self._foreign(partitions)} was not asked for"
        if full and len(told) != len(self._asked):
            return f"{len(self._asked)} partitions were asked for, {len(told)} answered"
        return None

    def _foreign(self, partitions: tuple[PartitionAnswer, ...]) -> str:
        each = next(each for each in partitions if each.key not in self._asked)
        return f"partition {each.partition} of topic {format_topic_id(each.topic_id)}"


def _after(epoch: int) -> int:
    """The epoch of the following request; 0 and -1 have other meanings (KIP-227)."""
    return _FIRST_EPOCH if epoch == _LAST_EPOCH else epoch + 1
