"""What the pages of docs/ show can be used as it stands."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from mock_coordinator.core.faults import faults_from_json

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_the_faults_page_shows_faults() -> None:
    text = (DOCS / "reference" / "faults.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(faults_from_json(block)) == 10


def test_the_page_on_clusters_names_what_executors_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    text = (DOCS / "how-to" / "spark-clusters.md").read_text(encoding="utf-8")
    (listed,) = re.findall(r"Its dependencies \((.*?)\)\s+are\s+compiled", text, re.DOTALL)
    names = {re.split(r"[<>=!~\[; ]", each)[0] for each in needed}
    assert sorted(names.difference(re.findall("`([^`]+)`", listed))) == []
