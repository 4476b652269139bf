"""Each command that README or a how-to page names in a sentence does something, as it stands there.
The blocks of commands in ``administer.md`` are played by the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from kip848_client.cli import main
from mock_coordinator.threaded import BrokerThread
from tests.pages._snippets import PAGES, commands, name_of

pytestmark = pytest.mark.mock_broker({"orders": 3})

COMMANDS = [
    pytest.param(words, id=f"{name_of(page)}: {' '.join(words)}")
    for page in PAGES
    for words in commands(page)
]
_BOOTSTRAP = "--bootstrap-server"


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("words", COMMANDS)
def test_the_command(words: list[str], mock_broker: BrokerThread, tmp_path: Path) -> None:
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("orders,0,0\n")
    bootstrap = [_BOOTSTRAP, mock_broker.bootstrap]
    group = ["--group", "billing", "--from-file", str(offsets), "--execute", "--create"]
    assert main(["groups", "reset-offsets", *bootstrap, *group]) == 0
    if _BOOTSTRAP in words:
        words = [mock_broker.bootstrap if word == "localhost:9092" else word for word in words]
    else:
        words = [*words[:2], *bootstrap, *words[2:]]
    if words[1] == "watch":
        words += ["--count", "1"]
    assert main(words) == 0
