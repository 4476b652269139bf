"""Which partition a key goes to.

``tests/vectors/murmur2.jsonl`` holds what ``Utils.murmur2`` of Kafka's Java client 4.4.0 answers:
the key as hex, and the hash as Java's signed number.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kip848_client.core.produce._partitioner import HASHES, partition_of_key

VECTORS = Path(__file__).parents[3] / "vectors" / "murmur2.jsonl"
CASES = [json.loads(line) for line in VECTORS.read_text().splitlines() if line]


@pytest.mark.parametrize("compiled", HASHES, ids={False: "python", True: "compiled"}.get)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["hex"][:16])
def test_murmur2_is_that_of_java(case: dict[str, int | str], compiled: bool) -> None:
    hashed = HASHES[compiled](bytes.fromhex(str(case["hex"])))
    assert hashed == int(case["hash"]) & 0xFFFFFFFF


def test_there_are_values_of_every_length_modulo_4() -> None:
    assert {len(bytes.fromhex(case["hex"])) % 4 for case in CASES} == {0, 1, 2, 3}


@pytest.mark.parametrize("key", [b"", b"key", bytes(64), bytes(65), b"\xff" * 200])
def test_a_key_is_always_in_the_same_place(key: bytes) -> None:
    expected = (HASHES[False](key) & 0x7FFFFFFF) % 7
    assert [partition_of_key(key, 7) for _ in range(3)] == [expected] * 3
