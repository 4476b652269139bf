"""Cuts a sequence that diverged down to what is needed for it, by playing parts of it again.

The recorded requests are played as they are, under fresh names, on the same two sides; ids that the
broker made up are replaced by those that it makes up now. Chunks of steps are left out, large ones
first, for as long as the same kind of request still diverges in the same field.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tests.differential._names import Names, renamed
from tests.differential._outcome import Exchange, Outcome
from tests.differential._plan import Plan, TooSlowError
from tests.differential._play import LeadingSide, Player
from tests.differential._sides import Side
from tests.differential._steps import Ask, AwaitValue, CreateTopic, Send, Step, Topic
from tests.differential._trace import Trace, written

__all__ = ["minimised", "replayed"]

_REPLAYS: Final = 60
_LIMIT_S: Final = 12.0

Symptom = tuple[str, str]


def minimised(outcome: Outcome, plan: Plan, real: LeadingSide, other: Side) -> str:
    """The lines of the shortest trace that was found to show the same divergence."""
    trace = Trace.of(outcome, plan)
    wanted = _symptom(outcome)
    steps = list(trace.steps)
    size = max(1, len(steps) // 2)
    replays = 0
    deadline = time.monotonic() + _LIMIT_S
    while size >= 1 and replays < _REPLAYS:
        position = 0
        while position < len(steps) - 1 and replays < _REPLAYS:
            if time.monotonic() > deadline:
                replays = _REPLAYS
                break
            fewer = steps[:position] + steps[position + size :]
            replays += 1
            if fewer and _shows(wanted, trace, fewer, f"{plan.seed}r{replays}", real, other):
                steps = fewer
            else:
                position += size
        size //= 2
    return written(Trace(trace.kind, trace.prefixes, trace.topics, tuple(steps)))


def _shows(
    wanted: Symptom,
    trace: Trace,
    steps: Sequence[Step | Exchange],
    label: str,
    real: LeadingSide,
    other: Side,
) -> bool:
    part = Trace(trace.kind, trace.prefixes, trace.topics, tuple(steps))
    try:
        return _symptom(replayed(part, trace.topics, label, real, other)) == wanted
    except (TooSlowError, AssertionError):
        return False  # what was left out was needed to play it at all


def _symptom(outcome: Outcome) -> Symptom:
    """Which kind of request diverged, and in which field."""
    if not outcome.divergences:
        return ("", "")
    exchange = outcome.divergences[0]
    path = next(each.path for each in exchange.differences if not each.is_text)
    return (exchange.ask.action, path.rpartition(".")[2])


def replayed(
    trace: Trace, topics: Sequence[Topic], label: str, real: LeadingSide, other: Side
) -> Outcome:
    """Play recorded steps under fresh names, on sides that have these topics."""
    outcome = Outcome(0, trace.kind)
    player = Player(outcome, f"diff-{label}", real, other)
    names = Names({trace.prefixes[0]: f"diff-{label}", trace.prefixes[1]: f"new-{label}"})
    ids = {each.name: each.topic_id for each in trace.topics}
    for topic in topics:
        if topic.name in ids:
            names.topic_ids[ids[topic.name]] = topic.topic_id
    try:
        for step in trace.steps:
            if player.has_diverged:
                break
            _replay(step, names, player)
    finally:
        real.abandon()
        other.abandon()
    return outcome


def _replay(step: Step | Exchange, names: Names, player: Player) -> None:
    if isinstance(step, Exchange):
        ask = step.ask
        before = len(player.outcome.steps)
        sent = _was_sent(step, player)
        if sent is not None:
            names.note(ask.message, step.real, sent.real)
            return
        answer = player.perform(Ask(ask.action, names.there(ask.message), ask.version, ask.channel))
        if len(player.outcome.steps) > before:
            names.note(ask.message, step.real, answer)
    elif isinstance(step, Send):
        player.perform(Send(step.action, names.there(step.message), step.version, step.channel))
    elif isinstance(step, AwaitValue):
        message = names.there(step.message)
        again = AwaitValue(step.action, message, step.version, step.path, step.wanted)
        player.perform(again)
    elif isinstance(step, CreateTopic):
        player.perform(renamed(step, names.strings))
    else:
        player.perform(renamed(step, names.strings))


def _was_sent(step: Exchange, player: Player) -> Exchange | None:
    """The exchange of now, where the recorded one was the later answer to a ``Send``."""
    played = player.outcome.steps
    if not any(
        isinstance(each, Send)
        and (each.channel, each.action) == (step.ask.channel, step.ask.action)
        for each in played
    ):
        return None
    same = [
        each
        for each in player.outcome.exchanges
        if (each.ask.channel, each.ask.action) == (step.ask.channel, step.ask.action)
    ]
    return same[-1] if same else step
