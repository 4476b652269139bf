"""``docs/reference/errors.md`` says what the tables say by which the client decides."""

from __future__ import annotations

import re

import pytest

from kip848_client import errors
from kip848_client.config import ConsumerConfig, ProducerConfig
from tools.docs.errors import COLUMNS, UNHEARD_OF, page
from tools.docs.errors.columns import Column

SETTINGS = ConsumerConfig.model_fields.keys() | ProducerConfig.model_fields.keys()


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_reaction_is_explained(column: Column) -> None:
    assert column.used().keys() <= column.words.keys()
    assert column.word_of(UNHEARD_OF) in column.words


def test_the_settings_and_errors_of_the_page_are_there() -> None:
    named = set(re.findall(r"`([a-z_]+_ms)`", page()))
    assert named
    assert named <= SETTINGS
    raised = set(re.findall(r"`([A-Z][A-Za-z]+)`", page()))
    assert raised
    assert raised <= set(errors.__all__)
