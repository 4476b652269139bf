"""The transactional ids of tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.spark.sink.core._transactional_ids import (
    is_of,
    run_of,
    transactional_id,
    with_label,
    without_name,
)

_RUN = run_of("0123456789abcdef0123456789abcdef")
_NAMES = st.text(min_size=1, max_size=20)
_NUMBERS = st.integers(0, 2**31)


@given(_NAMES, _NUMBERS, _NUMBERS)
def test_what_is_made_is_recognised_and_read_back(name: str, partition: int, attempt: int) -> None:
    made = transactional_id(name, _RUN, partition, attempt)
    assert is_of(name, None, made)
    assert is_of(name, _RUN, made)
    assert not is_of(name, "f" * 12, made)
    assert with_label(name, _RUN, without_name(name, _RUN, made)) == made


@pytest.mark.parametrize("other", ["billing", "billing-eu-0", "illing-eu", "billing.eu", ""])
def test_the_ids_of_another_query_are_not_ours(other: str) -> None:
    """One name may be a prefix of another."""
    assert not is_of(other, None, transactional_id("billing-eu", _RUN, 0, 1))
    assert not is_of("billing-eu", None, transactional_id(other, _RUN, 0, 1))
