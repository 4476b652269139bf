"""``kip848``: subcommands are found, loaded when used, and fail with the right code."""

from __future__ import annotations

import importlib

import pytest

from kip848_client.cli import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_keeps_its_side_of_the_deal(name: str) -> None:
    module = importlib.import_module(f"kip848_client.cli.{name}")
    assert callable(module.configure)
    assert callable(module.run)


@pytest.mark.parametrize("arguments", [[], ["nope"], ["mock", "--nope"]])
def test_a_wrong_command_line_ends_with_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    exit_status = ended.value.code
    assert exit_status == 2
    assert "usage: kip848" in capsys.readouterr().err


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert all(name in said for name in COMMANDS)


def test_a_wrong_setting_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mock", "--config", "num.partition=1"]) == 2
    assert "did you mean num.partitions" in capsys.readouterr().err
