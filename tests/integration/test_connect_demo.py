"""``kip848 connect demo`` as a user runs it, and what becomes of a worker that fails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.cli import main
from kip848_client.cli._demo._process import Child
from kip848_client.cli.connect import _demo


@pytest.mark.everything("`kip848 demo` is played in every run")
def test_the_story_told_in_a_hurry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_demo, "PAUSE_S", 0.0)
    monkeypatch.setattr(_demo, "_QUIET_S", 0.15)
    code = main(["connect", "demo", "--delay-ms", "700"])
    printed, errors = capsys.readouterr()
    assert code == 0, printed + errors
    assert errors == ""
    assert "scheduled.rebalance.max.delay.ms is 700 here" in printed
    assert "configured 14  running once 14  ran twice 0  lost 0  moves" in printed
    scenes = [
        printed.index(f" s  {said}") for said in ("W3 joins", "W2 is killed", "W3 comes back")
    ]
    assert scenes == sorted(scenes)
    assert "deferred until" in printed[scenes[1] : scenes[2]]


@pytest.mark.parametrize("delay", ["-1", "60001", "soon"])
def test_a_delay_that_makes_no_sense_is_refused(
    delay: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["connect", "demo", "--delay-ms", delay])
    assert "--delay-ms" in capsys.readouterr().err


@pytest.mark.asyncio
async def test_a_process_that_ends_by_itself_is_heard_of_and_can_be_killed() -> None:
    heard: list[dict[str, Any]] = []
    child = Child("kip848_client.cli", heard.append)  # a package that cannot be run
    await child.start()
    async with asyncio.timeout(20):
        while not heard:  # noqa: ASYNC110 - its end is the parent's to see, and tells no event
            await asyncio.sleep(0.01)
        assert heard == [{"error": "the process has ended by itself"}]
        assert await child.kill()
    assert not await child.kill()
    assert not await child.stop()
