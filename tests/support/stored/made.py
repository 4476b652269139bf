"""One object of each kind that may be stored, told all that it can be."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from kip848_client import Record, TopicPartition, errors
from kip848_client.error_codes import ErrorCode

__all__ = ["ERRORS", "made", "public_errors", "record", "stored_objects"]

_NUMBERS: Final[dict[str, Any]] = {
    "partition": 1,
    "offset": 7,
    "start": 2,
    "end": 5,
    "leader_epoch": 3,
}
_SPECIAL: Final[dict[str, Any]] = {
    "topic": "t",
    "next_offset": 8,
    "hint": "try this",
    "retriable": True,
    "maybe_written": True,
    "maybe_committed": True,
    "last_code": 3,
    "api": "Fetch",
    "offsets": {TopicPartition("t", 1): 5},
    "errors": {"g": errors.RequestTimedOut("x")},
    "done": {"h": 1},
    **_NUMBERS,
}
"""What an error may be told beside its text."""

ERRORS: Final = ("kip848_client.errors", "kip848_client.aiokafka.errors")
"""All errors of these modules are public, and these are the paths by which they are stored."""
_OTHERS: Final = (
    ("kip848_client.core.assignors", "AssignorError"),
    ("kip848_client.core.client_assignors", "AssignorFailed"),
    ("kip848_client.core.connect", "ItemsError"),
    ("kip848_client.history.core", "BadLine"),
    ("kip848_client.spark.pipeline", "DriverReplaced"),
    ("kip848_client.spark.pipeline", "OutputRefused"),
    ("kip848_client.spark.pipeline", "PipelineFailed"),
    ("mock_coordinator", "OwnershipViolation"),
    ("mock_coordinator.storage", "DataDamaged"),
    ("mock_coordinator.storage", "DataUnwritable"),
)
"""Where users find them; the modules that define them are private."""


def public_errors(*modules: str) -> Iterator[type[Exception]]:
    """The errors that these modules define, by name."""
    for module in modules:
        for _, each in sorted(vars(import_module(module)).items()):
            is_error = isinstance(each, type) and issubclass(each, errors.Kip848Error)
            if is_error and each.__module__ == module:
                yield each


def made(kind: Any) -> Any:
    """An error that is told all it can be."""
    fitting = dict(_SPECIAL)
    while True:
        try:
            if issubclass(kind, errors.BrokerError):
                return kind(int(ErrorCode.UNKNOWN_MEMBER_ID), "NAME", "said", **fitting)
            return kind("text", **fitting)
        except TypeError as err:
            if not fitting:
                raise
            unknown = [name for name in fitting if f"'{name}'" in str(err)]
            for name in unknown[:1] or [*fitting]:
                del fitting[name]


def record() -> Record[str, bytes]:
    """With a key that was deserialized."""
    headers = (("trace", b"\x01"), ("empty", b""))
    return Record("t", 1, 7, 1_750_000_000_000, 0, "key", b"value", None, 3, 5, headers)


def stored_objects() -> dict[str, Any]:
    """By the name under which users find the class."""
    found: dict[str, Any] = {"kip848_client.Record": record()}
    found["kip848_client.TopicPartition"] = TopicPartition("t", 1)
    for kind in public_errors(*ERRORS):
        found[f"{kind.__module__}.{kind.__qualname__}"] = made(kind)
    for module, name in _OTHERS:
        found[f"{module}.{name}"] = made(getattr(import_module(module), name))
    return found
