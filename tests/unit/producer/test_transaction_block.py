"""A transaction as a block, on a producer that does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from kip848_client import ConfigError, Consumer
from kip848_client.errors import RequestTimedOut
from kip848_client.producer._groups import to_commit
from kip848_client.producer._sending import Sending
from kip848_client.producer._transaction import Transaction

pytestmark = pytest.mark.asyncio


@dataclass(frozen=True)
class _FrozenError(Exception):
    number: int


class _SilentTransactor:
    """Its coordinator does not answer an abort."""

    async def begin_transaction(self) -> None:
        pass

    async def commit_transaction(self) -> None:
        pass

    async def abort_transaction(self) -> None:
        raise RequestTimedOut("no answer")

    async def send_offsets_to_transaction(
        self, offsets: Mapping[Any, Any] | None, group: Any
    ) -> None:
        pass

    def sending(self) -> Sending:
        raise NotImplementedError


@pytest.mark.parametrize("error", [ZeroDivisionError(), _FrozenError(5)], ids=repr)
async def test_the_applications_error_comes_out_though_the_abort_fails(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        async with Transaction[Any, Any](_SilentTransactor()):
            raise error
    assert raised.value is error


async def test_the_class_of_a_consumer_is_no_consumer() -> None:
    with pytest.raises(ConfigError, match="say which offsets"):
        to_commit(Consumer, None)
    with pytest.raises(ConfigError, match="group is a Consumer"):
        to_commit(Consumer, {("t", 0): 1})
