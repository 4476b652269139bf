"""A seed is a world: the same on every run, under every hash seed, as objects or as bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from mock_coordinator.sim import Failure, GroupWorld, draw_options, simulate
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.swarm import changes_of, with_changes
from tests.simulation.planted import failure_of

_MORE = pytest.mark.everything("more of the same dice")


def digests(seeds: str, hash_seed: str) -> str:
    """What a fresh interpreter prints for the seeds."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "mock_coordinator.sim", "--seeds", seeds, "--digest"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize(("first", "last"), [(13, 14), pytest.param(2, 7, marks=_MORE)])
@pytest.mark.timeout(240)
def test_the_trace_does_not_depend_on_the_hash_seed(first: int, last: int) -> None:
    seeds = f"{first}..{last}"
    printed = digests(seeds, "1")
    assert len(printed.splitlines()) == last - first + 1
    assert digests(seeds, "2") == printed


def test_the_same_seed_gives_the_same_trace() -> None:
    lines: list[str] = []
    again: list[str] = []
    first = simulate(draw_options(4), lines.append)
    second = simulate(draw_options(4), again.append)
    assert lines == again
    assert (first.digest, first.lines) == (second.digest, len(lines))


@pytest.mark.parametrize("seed", [10, 11, pytest.param(12, marks=_MORE), 13, 14])
def test_bytes_change_nothing(seed: int) -> None:
    """What passes through the codec does what the objects did; one seed of each profile."""
    options = draw_options(seed)
    plain = simulate(replace(options, codec=False))
    coded = simulate(replace(options, codec=True))
    assert coded.digest == plain.digest


def test_names_keep_their_randomness_apart() -> None:
    kernel, other = Kernel(1), Kernel(1)
    other.rng("network").random()
    assert kernel.rng("faults").random() == other.rng("faults").random()
    assert kernel.rng("network") is kernel.rng("network")


def test_a_failure_says_how_to_see_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(world: GroupWorld) -> list[str]:
        return [f"nothing is wrong with {world}, and yet"]

    monkeypatch.setattr(GroupWorld, "pending", stuck)
    changes = {"safety_ms": "20000", "codec": "true"}
    options = with_changes(draw_options(7), changes)
    failure = failure_of(GroupWorld, 7, changes)
    assert isinstance(failure, Failure)
    said = str(failure).splitlines()
    assert said[0].startswith("Stuck: nothing is wrong")
    assert said[1] == "seed 7"
    assert said[2] == f"options {options.describe()}"
    assert 40 <= len(said[3:-1]) <= 50
    assert said[-1] == f"replay: {(replay := GroupWorld.replay_command(options))}"
    assert replay.startswith("python -m mock_coordinator.sim --seed 7 --set ")
    again = with_changes(
        draw_options(7), {k: str(v) for k, v in changes_of(options, draw_options(7)).items()}
    )
    assert again == options
