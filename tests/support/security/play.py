"""Plays the cases on a side, and says in which fields two sides' answers differ."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kip848_client.core.wire import api_named
from tests.support.security.cases import CASES
from tests.support.security.prepared import Prepared, await_transactions, prepare
from tests.support.security.principals import PRINCIPALS
from tests.support.security.sides import SecureSide

__all__ = ["differences", "plain", "play"]

Answers = dict[tuple[str, str], Any]
"""(case, user) -> response; ``None`` where the connection was closed."""

_CHOSEN_BY_THE_BROKER: Final = ("cluster_id", "host", "port", "log_dir")
_REQUEST: Final = re.compile(r"^Request .* (?=needs |is not authorized)", re.DOTALL)
_SIZES: Final = ("total_bytes", "usable_bytes", "partition_size")
_FRESH_IDS: Final = ("CreateTopicsResponseCreatableTopicResult",)
_INTERNAL: Final = ("__consumer_offsets", "__transaction_state")


def play(side: SecureSide) -> tuple[Prepared, Answers]:
    """Every case as every user, in the version that the case names where the side has it."""
    with side.connect() as admin:
        offered = admin.versions()
        await_transactions(admin)
        prepared = prepare(admin, side.create_topic, PRINCIPALS)
    users = {name: side.login(name) for name in PRINCIPALS}
    answers: Answers = {}
    for case in CASES:
        low, high = offered.get(case.api, (1, 0))
        if not low <= case.version <= min(high, api_named(case.api).versions[1]):
            continue
        for name, user in users.items():
            answers[case.name, name] = user.request(case.build(prepared, name), case.version)
    for user in users.values():
        user.close()
    return prepared, answers


def differences(real: Mapping[Any, Any], ours: Mapping[Any, Any]) -> list[str]:
    """A line for every field that is not equal, and for every answer that one side lacks."""
    lines = [f"{key}: only one side" for key in real if key not in ours]
    for key, answer in real.items():
        if key in ours:
            found = _walk(plain(answer), plain(ours[key]))
            lines += [f"{key}{path}: real {left!r}, ours {right!r}" for path, left, right in found]
    return lines


def plain(value: Any) -> Any:
    """A message as dicts and sorted lists, without what a broker chooses for itself.

    Kafka answers in the order of hash maps; and where its controller refuses it prints the request
    object, of which only the end is compared.
    """
    if dataclasses.is_dataclass(value):
        kind = type(value).__name__
        found: dict[str, Any] = {"": kind}
        for field in dataclasses.fields(value):
            found[field.name] = plain(getattr(value, field.name))
        for name in _CHOSEN_BY_THE_BROKER:
            if found.get(name) not in (None, "", -1, 0):
                found[name] = "*"
        for name in _SIZES:
            found.pop(name, None)
        if kind in _FRESH_IDS or found.get("name") in _INTERNAL:
            found.pop("topic_id", None)
        return found
    if isinstance(value, tuple):
        return sorted((plain(each) for each in value), key=repr)
    if isinstance(value, str):
        return _REQUEST.sub("Request ", value)
    return value


def _walk(real: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in real:
            yield from _walk(real[key], ours.get(key), f"{path}.{key}" if key else path)
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (left, right) in enumerate(zip(real, ours, strict=True)):
            yield from _walk(left, right, f"{path}[{index}]")
    elif real != ours:
        yield path, real, ours
