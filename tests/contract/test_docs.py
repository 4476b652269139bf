"""What the pages of docs/ show can be used as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from mock_coordinator.core.faults import faults_from_json

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_faults_page_shows_faults() -> None:
    text = (DOCS / "reference" / "faults.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(faults_from_json(block)) == 10
