"""``docs/reference/settings.md`` says what the config classes say."""

from __future__ import annotations

import pytest

from kip848_client.config import ConsumerConfig, ProducerConfig
from kip848_client.config._client import ClientConfig
from tools.docs.settings import settings_of


@pytest.mark.parametrize("config", [ConsumerConfig, ProducerConfig])
def test_every_setting_is_there_with_what_it_means(config: type[ClientConfig]) -> None:
    bases = [each for each in reversed(config.__mro__) if issubclass(each, ClientConfig)]
    rows = [row for each in bases for row in settings_of(each)]
    assert [each.name for each in rows] == list(config.model_fields)
    assert not [each.name for each in rows if not each.meaning]
