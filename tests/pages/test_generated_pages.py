"""The pages that ``tools/docs`` writes are those in the repository."""

from __future__ import annotations

import pytest

from tools.docs import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name](), "run: python -m tools.docs"
