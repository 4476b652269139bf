"""Dead letters have the headers that an earlier state of the repository gave them."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import pytest

from tests.support.stored import FIXTURES
from tests.support.stored.dead_letters import headers_of_all, read

LETTERS: Final = read(FIXTURES)
CLASS_NAME: Final = "kip848.errors.exception.class.name"


@pytest.mark.parametrize("error", LETTERS)
def test_the_headers_are_those_of_earlier_letters(error: str) -> None:
    assert headers_of_all()[error] == LETTERS[error]


def test_each_error_of_today_is_there() -> None:
    new = headers_of_all().keys() - LETTERS.keys()
    assert not new, f"python -m tests.support.stored dead_letters: {sorted(new)}"


@pytest.mark.parametrize("error", LETTERS)
def test_a_program_that_reads_the_letter_finds_the_class(error: str) -> None:
    told = {str(name): value for name, value in LETTERS[error]}[CLASS_NAME]
    assert told == error
    module, _, name = error.rpartition(".")
    assert issubclass(getattr(import_module(module), name), Exception)
