"""``docs/reference/metrics.md`` says what the table in the code says."""

from __future__ import annotations

from tests.metrics_page import page
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "metrics.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.metrics_page > docs/reference/metrics.md"
    )
