"""``docs/reference/pipeline.md`` says what the config classes say."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from tests.pipeline_page import SECTIONS, page, rows_of
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "pipeline.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.pipeline_page > docs/reference/pipeline.md"
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_there_with_what_it_means(section: type[BaseModel]) -> None:
    rows = rows_of(section)
    assert [name for name, *_ in rows] == list(section.model_fields)
    assert not [name for name, *_, meaning in rows if not meaning]
