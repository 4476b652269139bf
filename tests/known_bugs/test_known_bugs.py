"""Each known bug is seen by the tests that the table names, which name the bug; and the page is
the table."""

from __future__ import annotations

import asyncio
import inspect
import re

import pytest

from tests.known_bugs.rows import KnownBug, Proof, name_of
from tests.known_bugs.table import ALL
from tests.support.planting import plant

PROOFS = [
    pytest.param(proof, id=f"{bug.seen_in}-{number}")
    for bug in ALL
    for number, proof in enumerate(bug.proofs)
]


def run(proof: Proof) -> None:
    result = proof.test(*proof.arguments)
    if inspect.iscoroutine(result):
        asyncio.run(result)


@pytest.mark.parametrize("proof", PROOFS)
def test_the_test_sees_the_bug(monkeypatch: pytest.MonkeyPatch, proof: Proof) -> None:
    run(proof)
    plant(monkeypatch, *proof.plants)
    with pytest.raises((AssertionError, pytest.fail.Exception, proof.crash)) as seen:
        run(proof)
    if proof.crash is not AssertionError:
        assert seen.type is proof.crash


@pytest.mark.parametrize("bug", ALL, ids=lambda bug: bug.seen_in)
def test_its_tests_name_the_bug(bug: KnownBug) -> None:
    """Where it has a number, so that the number finds them."""
    numbers = [each for each in bug.seen_in.split("; ") if re.search(r"#\d|[A-Z]-\d", each)]
    for proof in bug.proofs:
        said = " ".join((inspect.getdoc(proof.test) or "").split())
        missing = [each for each in numbers if not re.search(rf"{re.escape(each)}\b", said)]
        assert not missing, f"{name_of(proof.test)} does not name {missing}"


def test_a_bug_has_one_row() -> None:
    names = [each for bug in ALL for each in bug.seen_in.split("; ") if "#" in each or "-" in each]
    assert len(names) == len(set(names))
