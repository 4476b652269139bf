"""Errors are copied and sent to other processes with all that they say."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from kip848_client import errors
from kip848_client.aiokafka import errors as swapped
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import Kip848Error, broker_error
from tests.support.stored.made import made


def kinds() -> Iterator[type[Exception]]:
    for module in (errors, swapped):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, Kip848Error):
                yield each


KINDS = sorted(set(kinds()), key=lambda kind: kind.__name__)


def pickled(error: Any) -> Any:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("travel", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", KINDS)
def test_each_arrives_as_it_was(kind: type[Exception], travel: Callable[[Any], Any]) -> None:
    error = made(kind)
    error.add_note("a note")
    found = travel(error)
    assert type(found) is kind
    assert str(found) == str(error)
    assert found.args == error.args
    assert found.__notes__ == ["a note"]
    assert vars(found).keys() == vars(error).keys()
    assert all(repr(vars(found)[name]) == repr(value) for name, value in vars(error).items())


def refused() -> None:
    code = ErrorCode.FENCED_MEMBER_EPOCH
    raise broker_error(code, error_name(code), "said", api="Heartbeat")


@pytest.mark.everything("another process takes a second to start")
def test_what_a_worker_raises_is_raised_by_its_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        with pytest.raises(errors.FencedMemberEpoch, match="said") as raised:
            pool.submit(refused).result(60)
        assert raised.value.name == error_name(ErrorCode.FENCED_MEMBER_EPOCH)
        assert pool.submit(len, "ab").result(60) == 2, "the pool lives on"
