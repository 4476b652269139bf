"""Client quotas: every refusal, every kind of filter."""

from __future__ import annotations

from typing import Any

from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

_Entity = list[tuple[str, str | None]]

EXACT, DEFAULT, ANY = 0, 1, 2


def _entry(entity: _Entity, *ops: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
        "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
    }


def _alter(entity: _Entity, *ops: tuple[str, float | None], dry: bool = False) -> Step:
    return ask("AlterClientQuotas", entries=[_entry(entity, *ops)], validate_only=dry)


def _filter(*parts: tuple[str, int, str | None], strict: bool = False) -> Step:
    components = [
        {"entity_type": kind, "match_type": how, "match": text} for kind, how, text in parts
    ]
    return ask("DescribeClientQuotas", components=components, strict=strict)


_U1: _Entity = [("user", "u1")]
_IP: _Entity = [("ip", "1.2.3.4")]

STEPS: list[Step] = [
    _filter(),
    _alter(_U1, ("producer_byte_rate", 1000.0)),
    _alter([("user", "u1"), ("client-id", "c1")], ("consumer_byte_rate", 5.0)),
    _alter([("user", None)], ("request_percentage", 50.5)),
    _alter([("client-id", "c2")], ("controller_mutation_rate", 2.5)),
    _alter(_IP, ("connection_creation_rate", 10.0)),
    _alter([("ip", None)], ("connection_creation_rate", 20.0)),
    _alter([("ip", "localhost")], ("connection_creation_rate", 3.0)),
    _alter(_U1, ("nope", 1.0)),
    _alter(_U1, ("nope", None)),
    _alter(_U1, ("producer_byte_rate", 1.5)),
    _alter(_U1, ("producer_byte_rate", 1.0000001)),
    _alter(_U1, ("producer_byte_rate", -1.0)),
    _alter(_U1, ("producer_byte_rate", 1e30)),
    _alter(_U1, ("request_percentage", -5.0)),
    _alter(_U1, ("request_percentage", float("inf"))),
    _alter(_U1, ("consumer_byte_rate", float("nan")), dry=True),
    _alter(_U1, ("producer_byte_rate", 1.0), ("nope", 1.0)),
    _alter(_IP, ("connection_creation_rate", 1e12)),
    _alter(_IP, ("connection_creation_rate", 1.5)),
    _alter(_IP, ("producer_byte_rate", 1.0)),
    _alter([("ip", "no host")], ("connection_creation_rate", 1.0)),
    _alter([("ip", "no host")], ("producer_byte_rate", 1.0)),
    _alter(_U1, ("connection_creation_rate", 1.0)),
    _alter([("nope", "x")], ("producer_byte_rate", 1.0)),
    _alter([], ("producer_byte_rate", 1.0)),
    _alter([("user", "u1"), ("ip", "1.2.3.4")], ("producer_byte_rate", 1.0)),
    _alter([("user", "u1"), ("user", "u2")], ("producer_byte_rate", 1.0)),
    _alter([("user", "")], ("producer_byte_rate", 1.0)),
    _alter([("user", "u9")], ("producer_byte_rate", 1.0), dry=True),
    _alter([("user", "u9")], ("producer_byte_rate", None)),
    _alter(_U1),
    _alter([("user", "d")], ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)),
    ask(
        "AlterClientQuotas",
        entries=[
            _entry([("user", "twice")], ("producer_byte_rate", 1.0)),
            _entry([("user", "twice")], ("consumer_byte_rate", 1.0)),
            _entry([("user", "once")], ("consumer_byte_rate", 1.0)),
        ],
        validate_only=False,
    ),
    _filter(),
    _filter(strict=True),
    _filter(("user", EXACT, "u1")),
    _filter(("user", EXACT, "u1"), strict=True),
    _filter(("user", DEFAULT, None)),
    _filter(("user", ANY, None)),
    _filter(("user", ANY, None), strict=True),
    _filter(("client-id", ANY, None)),
    _filter(("client-id", ANY, None), strict=True),
    _filter(("ip", ANY, None)),
    _filter(("ip", EXACT, "1.2.3.4")),
    _filter(("ip", DEFAULT, None)),
    _filter(("user", EXACT, "u1"), ("client-id", ANY, None)),
    _filter(("user", EXACT, "u1"), ("client-id", DEFAULT, None)),
    _filter(("user", EXACT, "u1"), ("user", EXACT, "u2")),
    _filter(("nope", EXACT, "x")),
    _filter(("", EXACT, "x")),
    _filter(("user", 7, "x")),
    _filter(("ip", EXACT, "x"), ("user", EXACT, "u1")),
    _filter(("user", EXACT, None)),
    _filter(("user", DEFAULT, "x")),
    _filter(("user", ANY, "x")),
    ask("DescribeClientQuotas", 0, components=[], strict=False),
    _alter(_U1, ("producer_byte_rate", None)),
    _alter([("user", "u1"), ("client-id", "c1")], ("consumer_byte_rate", None)),
    _filter(),
]
