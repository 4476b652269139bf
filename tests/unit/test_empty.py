"""The mapping that has nothing: as an empty dict, but nobody can put anything into it."""

from __future__ import annotations

import copy
import pickle
from typing import Any, cast

import pytest

from kip848_client.core.empty import EMPTY


def test_it_is_an_empty_mapping() -> None:
    assert EMPTY == {}
    assert not EMPTY
    assert list(EMPTY) == []
    assert EMPTY.get("a", 1) == 1
    assert repr(EMPTY) == "{}"
    with pytest.raises(KeyError):
        EMPTY["a"]


def test_nothing_can_be_put_into_it() -> None:
    with pytest.raises(TypeError):
        cast("Any", EMPTY)["a"] = 1


def test_a_copy_is_the_same() -> None:
    assert copy.deepcopy(EMPTY) is EMPTY
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY
