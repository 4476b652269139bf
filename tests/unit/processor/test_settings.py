"""What a processor is made of, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kip848_client import ConfigError, Consumer, ExactlyOnceProcessor, Producer, ProducerRecord


def _consumer(*topics: str, **settings: Any) -> Consumer[Any, Any]:
    given: dict[str, Any] = {
        "group_id": "g",
        "enable_auto_commit": False,
        "isolation_level": "read_committed",
        **settings,
    }
    return Consumer(*topics, **given)


def _processor(function: Any = ProducerRecord, **arguments: Any) -> ExactlyOnceProcessor[Any, Any]:
    given: dict[str, Any] = {
        "topics": "t",
        "consumer": _consumer(),
        "producer": Producer(transactional_id="x"),
        **arguments,
    }
    return ExactlyOnceProcessor(given.pop("topics"), function, **given)


def test_what_fits() -> None:
    processor = _processor(
        topics=["t", "u"], dead_letter_topic="dead", batch=True, commit_interval_ms=59_999
    )
    assert repr(processor).startswith("<ExactlyOnceProcessor t, u by <Producer")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (lambda: {"topics": ()}, "at least one topic"),
        (lambda: {"topics": "no/topic"}, "not a topic name"),
        (lambda: {"topics": 5}, "topics is a list"),
        (lambda: {"function": "f"}, "function is called with each record"),
        (lambda: {"consumer": None}, "consumer is a Consumer"),
        (lambda: {"consumer": Producer()}, "consumer is a Consumer"),
        (lambda: {"consumer": _consumer(enable_auto_commit=True)}, "enable_auto_commit=False"),
        (lambda: {"consumer": _consumer(isolation_level="read_uncommitted")}, "read_committed"),
        (lambda: {"consumer": _consumer(group_id=None)}, "needs group_id"),
        (lambda: {"consumer": _consumer("t")}, "give the topics to the processor"),
        (lambda: {"producer": "x"}, "producer is a Producer"),
        (lambda: {"producer": Producer()}, "needs a transactional_id"),
        (lambda: {"batch": 1}, "batch is True or False"),
        (lambda: {"max_records": 0}, "max_records must be a positive int"),
        (lambda: {"commit_interval_ms": 0}, "commit_interval_ms must be a positive int"),
        (
            lambda: {"commit_interval_ms": 60_000},
            r"transaction_timeout_ms=60000.*shorter commit_interval_ms, or a producer",
        ),
        (
            lambda: {"producer": Producer(transactional_id="x", transaction_timeout_ms=100)},
            "commit_interval_ms=100 keeps transactions open",
        ),
        (lambda: {"dead_letter_topic": "no/topic"}, "not a topic name"),
        (lambda: {"dead_letter_topic": "t"}, "t is read by the processor"),
        (
            lambda: {
                "dead_letter_topic": "dead",
                "consumer": _consumer(value_deserializer=bytes.decode),
            },
            "no deserializers",
        ),
    ],
)
def test_what_does_not_fit(arguments: Callable[[], dict[str, Any]], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        _processor(**arguments())


def test_all_that_is_wrong_of_a_consumer_is_said_at_once() -> None:
    with pytest.raises(ConfigError, match=r"group_id.*enable_auto_commit.*isolation_level"):
        _processor(consumer=Consumer())
