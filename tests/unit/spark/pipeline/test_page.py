"""``docs/reference/pipeline.md`` says what the config classes say."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from tools.docs.pipeline import SECTIONS, rows_of


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_there_with_what_it_means(section: type[BaseModel]) -> None:
    rows = rows_of(section)
    assert [name for name, *_ in rows] == list(section.model_fields)
    assert not [name for name, *_, meaning in rows if not meaning]
