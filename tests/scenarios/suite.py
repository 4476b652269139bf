"""Playing files on the bundled coordinator: the normal run, and rewriting."""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.profiles import profile_named
from tests.scenarios.core_backend import CoreBackend
from tests.scenarios.given_ids import GivenIds
from tests.scenarios.runner import Printed, differences, play
from tests.scenarios.script import Script

__all__ = ["INITIAL_DELAY", "INTERVAL", "broker_settings", "check", "play_on_core", "rewrite"]

INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"
INTERVAL: Final = "group.consumer.assignment.interval.ms"


def broker_settings(script: Script, profile: str) -> dict[str, str]:
    """The settings a file asks for. Unless it says otherwise targets are computed at once, as
    versions without the assignment interval (KIP-1263) do anyway, and classic groups do not wait
    for company (KIP-134)."""
    interval = {INTERVAL: "0"} if profile_named(profile).has_assignment_interval else {}
    return {INITIAL_DELAY: "0", **interval, **script.broker}


def play_on_core(script: Script, profile: str, *, given_ids: GivenIds | None = None) -> Printed:
    """Play a file on a fresh coordinator of a profile, with its own ids or those given."""
    backend = CoreBackend(profile, broker_settings(script, profile), given_ids=given_ids)
    return play(script, backend)


def check(script: Script, profile: str) -> list[str]:
    """Play a file and say where it differs."""
    return differences(script, profile, play_on_core(script, profile))


def rewrite(script: Script) -> bool:
    """Write what the bundled coordinator prints into the file; whether that changed it."""
    outputs: dict[int, dict[str, list[str]]] = {block.line: {} for block in script.blocks}
    for profile in script.profiles:
        for line, printed in play_on_core(script, profile).items():
            assert printed is not None, "the bundled coordinator can show everything"
            outputs[line][profile] = printed
    text = script.text(outputs)
    if text == script.path.read_text(encoding="utf-8"):
        return False
    script.path.write_text(text, encoding="utf-8")
    return True
