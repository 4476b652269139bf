"""A sequence as text, to be kept and played again: one JSON object a line.

The first line names the sequence and the topics it began with. Requests are in their wire format,
with what the real broker answered: the ids that a broker made up then are replaced by those of the
broker that the trace is played on.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.core.wire import APIS, decode, encode, request_api
from tests.differential import _steps
from tests.differential._channels import Closed
from tests.differential._outcome import Exchange, Outcome
from tests.differential._plan import Plan
from tests.differential._steps import Ask, AwaitValue, Send, Step, Topic

__all__ = ["Trace", "read_trace", "written"]

_PLAIN: Final = (
    _steps.Gather,
    _steps.CreateTopic,
    _steps.GrowTopic,
    _steps.DeleteTopic,
    _steps.Pause,
    _steps.AwaitPatterns,
    _steps.AwaitGone,
    _steps.SettleMetadata,
)


@dataclass(frozen=True, slots=True)
class Trace:
    """``prefixes`` are what the recorded group ids and topic names begin with; ``topics`` those
    that existed before."""

    kind: str
    prefixes: tuple[str, str]
    topics: tuple[Topic, ...]
    steps: tuple[Step | Exchange, ...]

    @classmethod
    def of(cls, outcome: Outcome, plan: Plan) -> Trace:
        """What was played."""
        label = _label(outcome, plan)
        prefixes = (f"diff-{label}", f"new-{label}")
        return cls(outcome.kind, prefixes, tuple(plan.topics), tuple(outcome.steps))


def _label(outcome: Outcome, plan: Plan) -> str:
    """The label under which it was played in the end: an attempt may have been too slow."""
    for each in outcome.exchanges:
        for name in ("group_id", "group_ids", "groups", "groups_names"):
            value = getattr(each.ask.message, name, "")
            for text in (value,) if isinstance(value, str) else value:
                if isinstance(text, str) and text.startswith(f"diff-{plan.seed}"):
                    return text.removeprefix("diff-").partition("-")[0]
    return plan.label


def written(trace: Trace) -> str:
    """The lines of a trace."""
    topics = [[each.name, each.topic_id.hex(), each.partitions] for each in trace.topics]
    head = {"kind": trace.kind, "prefixes": list(trace.prefixes), "topics": topics}
    return "\n".join(json.dumps(each) for each in (head, *_lines(trace.steps)))


def _lines(steps: Sequence[Step | Exchange]) -> Iterator[dict[str, Any]]:
    for step in steps:
        if isinstance(step, Exchange):
            line = _request("exchange", step.ask)
            line["channel"] = step.ask.channel
            if step.real is not None and not isinstance(step.real, Closed):
                line["real"] = encode(step.real, step.ask.version).hex()
            yield line
        elif isinstance(step, Send):
            yield {**_request("send", step), "channel": step.channel}
        elif isinstance(step, AwaitValue):
            yield {**_request("await-value", step), "path": step.path, "wanted": list(step.wanted)}
        elif not isinstance(step, Ask):
            yield {"step": type(step).__name__, **dataclasses.asdict(step)}


def _request(kind: str, step: Any) -> dict[str, Any]:
    key = request_api(step.message).key
    body = encode(step.message, step.version).hex()
    return {"step": kind, "action": step.action, "api": key, "version": step.version, "body": body}


def read_trace(lines: Iterable[str]) -> Trace:
    """The trace that ``written`` wrote."""
    head, *rest = (json.loads(line) for line in lines if line.strip())
    topics = tuple(Topic(name, bytes.fromhex(text), n) for name, text, n in head["topics"])
    group_prefix, topic_prefix = head["prefixes"]
    steps = tuple(_read(line) for line in rest)
    return Trace(head["kind"], (group_prefix, topic_prefix), topics, steps)


def _read(line: dict[str, Any]) -> Step | Exchange:
    kind = line.pop("step")
    if kind in ("exchange", "send", "await-value"):
        api = APIS[line["api"]]
        message: Any = decode(api.request, line["version"], bytes.fromhex(line["body"]))
        common = (line["action"], message, line["version"])
        if kind == "send":
            return Send(*common, line["channel"])
        if kind == "await-value":
            return AwaitValue(*common, line["path"], tuple(line["wanted"]))
        real: Any = None
        if "real" in line:
            real = decode(api.response, line["version"], bytes.fromhex(line["real"]))
        return Exchange(Ask(*common, line["channel"]), real, None, ())
    plain: Any = {each.__name__: each for each in _PLAIN}[kind]
    fields: dict[str, Any] = {
        name: tuple(tuple(x) if isinstance(x, list) else x for x in value)
        if isinstance(value, list)
        else value
        for name, value in line.items()
    }
    step: Step = plain(**fields)
    return step
