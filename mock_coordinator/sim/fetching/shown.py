"""Events and commands of the fetch core in a line of the trace."""

from __future__ import annotations

from dataclasses import fields

from kip848_client.core.cluster import LeadersLearnt
from kip848_client.core.fetch import Command, Event, FetchAnswered, SendFetch, Undecodable

__all__ = ["shown"]


def shown(what: Event | Command) -> str:
    """In short, and the same in every run of a seed."""
    name = type(what).__name__
    match what:
        case SendFetch():
            intent = what.intent
            rows = " ".join(
                f"{w.topic_id[-1:].hex()}:{w.partition}@{w.offset}/{w.last_epoch}"
                for w in intent.add
            )
            gone = " ".join(f"-{t[-1:].hex()}:{p}" for t, p in intent.forget)
            session = f"{intent.session_id & 0xFF:02x}.{intent.session_epoch}"
            return f"{name} #{what.fetch} node{what.node} {session} {rows} {gone}".rstrip()
        case FetchAnswered():
            answer = what.answer
            rows = " ".join(
                f"{p.topic_id[-1:].hex()}:{p.partition}={len(p.records)}"
                f"{f'!{p.error_code}' if p.error_code else ''}"
                f"{f' diverging {tuple(p.diverging)}' if p.diverging else ''}"
                f"{f' prefer {p.preferred_replica}' if p.preferred_replica >= 0 else ''}"
                for p in answer.partitions
            )
            error = f" !{answer.error_code}" if answer.error_code else ""
            wait = f" throttled {answer.throttle_time_ms}" if answer.throttle_time_ms else ""
            return f"{name} #{what.fetch}{error}{wait} {rows}".rstrip()
        case LeadersLearnt():
            rows = " ".join(
                f"{t.topic}/{t.topic_id[-1:].hex()}"
                + "".join(
                    f" {p}:{leader.leader}/{leader.epoch}"
                    for p, leader in sorted(t.partitions.items())
                )
                for t in what.topics
            )
            return f"{name} #{what.number} {rows}"
        case Undecodable():
            return f"{name} {what.partition.topic}-{what.partition.partition} at {what.offset}"
        case _:
            return _plain(what)


def _plain(what: Event | Command) -> str:
    values = [f"{each.name}={_value(getattr(what, each.name))}" for each in fields(what)]
    return f"{type(what).__name__} {' '.join(values)}".rstrip()


def _value(value: object) -> str:
    if isinstance(value, frozenset | set):
        return "{" + ", ".join(sorted(_value(each) for each in value)) + "}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(k)}: {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, bytes):
        return value[-1:].hex()
    if isinstance(value, tuple):
        return "(" + ", ".join(_value(each) for each in value) + ")"
    return str(value)
