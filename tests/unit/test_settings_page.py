"""``docs/reference/settings.md`` says what the config classes say."""

from __future__ import annotations

import pytest

from kip848_client.config import ConsumerConfig, ProducerConfig
from kip848_client.config._client import ClientConfig
from tests.settings_page import page, settings_of
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "settings.md"


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.settings_page > docs/reference/settings.md"
    )


@pytest.mark.parametrize("config", [ConsumerConfig, ProducerConfig])
def test_every_setting_is_there_with_what_it_means(config: type[ClientConfig]) -> None:
    rows = settings_of(ClientConfig) + settings_of(config)
    assert [each.name for each in rows] == list(config.model_fields)
    assert not [each.name for each in rows if not each.meaning]
