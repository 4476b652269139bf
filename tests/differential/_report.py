"""Says in text what the differential runs showed."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from kip848_client.core.types import format_topic_id
from kip848_client.error_codes import error_name
from mock_coordinator.core.logs.record_batch import HEADER_BYTES, read_header
from tests.differential._outcome import Exchange, Outcome

__all__ = ["coverage", "story", "summary"]

_HISTORY: Final = 14
_LINE: Final = 1200
_DIFFERENCES: Final = 8
_MAGIC_AT: Final = 16
_MAGIC: Final = 2


def summary(version: str, outcomes: Iterable[Outcome], took_s: float = 0) -> str:
    """A line for each kind, and one for all: sequences, requests, divergences, differing error
    texts."""
    played = list(outcomes)
    kinds = sorted({each.kind for each in played})
    lines = [_line(f"  {kind}", [each for each in played if each.kind == kind]) for kind in kinds]
    speed = f", {len(played) / took_s:.1f} seeds/s" if took_s else ""
    return "\n".join([*lines, f"{_line(f'Kafka {version}', played)}{speed}"])


def _line(title: str, played: list[Outcome]) -> str:
    requests = sum(len(each.exchanges) for each in played)
    divergent = sum(len(each.divergences) for each in played)
    said = sum(each.texts for each in played)
    differing = sum(len(each.differing_texts) for each in played)
    slow = sum(bool(each.too_slow) for each in played)
    return (
        f"{title}: sequences {len(played) - slow}, requests {requests}, divergences {divergent}, "
        f"error texts {said}, differing error texts {differing}"
        f"{f', not played {slow}' if slow else ''}"
    )


def coverage(outcomes: Iterable[Outcome]) -> str:
    """How often each kind of request was sent, and which errors the real broker answered."""
    kinds: Counter[str] = Counter()
    errors: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        for exchange in outcome.exchanges:
            action = exchange.ask.action
            kinds[action] += 1
            errors.setdefault(action, Counter()).update(
                error_name(code) for code in _codes(exchange.real) if code
            )
    lines: list[str] = []
    for action, count in sorted(kinds.items()):
        seen = ", ".join(f"{name} {times}" for name, times in errors[action].most_common())
        lines.append(f"  {action:<20}{count:>6}  {seen}")
    return "\n".join(lines)


def story(outcome: Outcome, history: int = _HISTORY) -> str:
    """What led to a sequence's first difference, and the difference."""
    lines = [f"{outcome.kind} seed {outcome.seed}:"]
    steps = outcome.steps
    first = next(
        (n for n, each in enumerate(steps) if isinstance(each, Exchange) and each.differences),
        len(steps) - 1,
    )
    for number in range(max(0, first - history), first + 1):
        each = steps[number]
        if not isinstance(each, Exchange):
            lines.append(f"  {number:>3} {each}")
            continue
        where = f" channel {each.ask.channel}" if each.ask.channel else ""
        lost = " (answer lost)" if each.ask.lost else ""
        action = f"{each.ask.action} v{each.ask.version}{where}{lost}"
        asked = f"{action}: {type(each.ask.message).__name__} {shown(each.ask.message)}"
        lines.append(_cut(f"  {number:>3} {asked}"))
        lines.append(_cut(f"        -> {shown(each.real)}"))
        shown_ones = each.differences[:_DIFFERENCES]
        lines += [_cut(f"        !! {difference}") for difference in shown_ones]
    return "\n".join(lines)


def _cut(line: str) -> str:
    return line if len(line) <= _LINE else f"{line[:_LINE]}..."


def shown(value: Any) -> str:
    """A message in one line: only what is set, partitions as ``topic[0-5,7]``."""
    if isinstance(value, tuple):
        return "[" + ", ".join(shown(each) for each in value) + "]"
    if isinstance(value, bytes) and len(value) == 16:
        return format_topic_id(value)
    if isinstance(value, bytes) and len(value) > HEADER_BYTES and value[_MAGIC_AT] == _MAGIC:
        head = read_header(value)
        producer = f"producer {head.producer_id} epoch {head.producer_epoch}"
        return f"<batch of {head.count}, {producer} sequence {head.base_sequence}>"
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        text = repr(value)
        return text if len(text) < 200 else f"{text[:60]}... ({len(text)} characters)"
    partitions: Any = getattr(value, "partitions", None)
    topic_id: Any = getattr(value, "topic_id", None)
    if topic_id is not None and _are_numbers(partitions):
        name = getattr(value, "topic_name", "") or format_topic_id(topic_id)
        return f"{name}[{_ranges(partitions)}]"
    parts: list[str] = []
    for each in dataclasses.fields(value):
        item = getattr(value, each.name)
        default = each.default
        if each.default_factory is not dataclasses.MISSING:
            default = each.default_factory()
        if item != default or each.name == "member_epoch":
            parts.append(f"{each.name}={shown(item)}")
    return f"({', '.join(parts)})"


def _are_numbers(partitions: Any) -> bool:
    return isinstance(partitions, tuple) and all(isinstance(each, int) for each in partitions)


def _ranges(numbers: Iterable[int]) -> str:
    """``(0, 1, 2, 5)`` -> ``"0-2,5"``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _codes(value: Any) -> Iterator[int]:
    if isinstance(value, tuple):
        for each in value:
            yield from _codes(each)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            item = getattr(value, field.name)
            if field.name == "error_code":
                yield item
            else:
                yield from _codes(item)
