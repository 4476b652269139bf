"""Which error meets the application when."""

from __future__ import annotations

import pytest

from kip848_client.consumer._error_box import ErrorBox
from kip848_client.errors import Kip848Error


def test_an_empty_box_raises_nothing() -> None:
    box = ErrorBox(lambda: None)
    box.check()
    assert not box


def test_once_errors_come_first_and_in_order() -> None:
    woken: list[bool] = []
    box = ErrorBox(lambda: woken.append(True))
    box.raise_always(Kip848Error("fatal"))
    box.raise_once(Kip848Error("one"))
    box.raise_once(Kip848Error("two"))
    assert len(woken) == 3
    for text in ("one", "two", "fatal", "fatal"):
        with pytest.raises(Kip848Error, match=text):
            box.check()


def test_the_first_fatal_error_stays() -> None:
    box = ErrorBox(lambda: None)
    box.raise_always(Kip848Error("first"))
    box.raise_always(Kip848Error("second"))
    assert str(box.fatal) == "first"


def test_errors_do_not_pile_up() -> None:
    box = ErrorBox(lambda: None)
    for number in range(1000):
        box.raise_once(Kip848Error(str(number)))
    with pytest.raises(Kip848Error, match="984"):
        box.check()
