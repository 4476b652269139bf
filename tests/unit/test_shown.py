"""What a client shows of itself before it is made."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from kip848_client import Admin, ConfigError, Consumer, ExactlyOnceProcessor, Producer
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.connect import Worker

CLIENTS: tuple[type[object], ...] = (
    Admin,
    AIOKafkaConsumer,
    AIOKafkaProducer,
    Consumer,
    ExactlyOnceProcessor,
    Producer,
    Worker,
)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_that_is_not_made_yet(kind: type[object]) -> None:
    assert repr(kind.__new__(kind)) == f"<{kind.__name__}, not made yet>"


@pytest.mark.parametrize("make", [Admin, Consumer, Producer])
def test_a_traceback_with_local_variables(make: Callable[..., object]) -> None:
    with pytest.raises(ConfigError) as caught:
        make(client_id=5)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    assert "client_id" in "".join(told.format())
