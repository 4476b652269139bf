"""Events and commands of cores in a line of the trace."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from kip848_client.core.produce import SealedBatch
from kip848_client.errors import Kip848Error
from mock_coordinator.core.logs.record_batch import read_header

__all__ = ["shown"]


def shown(what: Any) -> str:
    """In short, and the same in every run of a seed."""
    values = [f"{each.name}={_value(getattr(what, each.name))}" for each in fields(what)]
    return f"{type(what).__name__} {' '.join(values)}".rstrip()


def _value(value: object) -> str:
    match value:
        case SealedBatch():
            header = read_header(value.data)
            who = f"{header.producer_id}/{header.producer_epoch}"
            sequences = f"{header.base_sequence}+{header.count}"
            return f"{value.tp.topic}-{value.tp.partition} {who} {sequences}"
        case Kip848Error():
            return f"{type(value).__name__}({value})"
        case set() | frozenset():
            return "{" + ", ".join(sorted(_value(each) for each in value)) + "}"
        case dict():
            return "{" + ", ".join(f"{_value(k)}: {_value(v)}" for k, v in value.items()) + "}"
        case bytes():
            return value[-1:].hex()
        case tuple():
            return "(" + ", ".join(_value(each) for each in value) + ")"
        case _ if is_dataclass(value):
            named = [f"{each.name}={_value(getattr(value, each.name))}" for each in fields(value)]
            return f"{type(value).__name__}({' '.join(named)})"
        case _:
            return str(value)
