"""``docs/reference/pipeline.md`` says what the config classes say, and the settings of the how-to
page are settings."""

from __future__ import annotations

import re
import tomllib

import pytest
from pydantic import BaseModel

from kip848_client.spark.pipeline.config import config_from
from tests.pages._snippets import ROOT
from tools.docs.pipeline import SECTIONS, rows_of


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_is_there_with_what_it_means(section: type[BaseModel]) -> None:
    rows = rows_of(section)
    assert [name for name, *_ in rows] == list(section.model_fields)
    assert not [name for name, *_, meaning in rows if not meaning]


def test_the_settings_of_the_page_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "x")
    page = (ROOT / "docs" / "how-to" / "pipeline.md").read_text(encoding="utf-8")
    whole, *parts = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert parts
    for part in parts:
        config_from(tomllib.loads(whole) | tomllib.loads(part))
