"""SCRAM credentials."""

from __future__ import annotations

from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

SHA_256, SHA_512 = 1, 2

_Upsertion = tuple[str, int, int]


def _described(*users: str) -> Step:
    return ask("DescribeUserScramCredentials", users=[{"name": user} for user in users])


def _alter(*upsertions: _Upsertion, deleted: list[tuple[str, int]] | None = None) -> Step:
    return ask(
        "AlterUserScramCredentials",
        deletions=[{"name": name, "mechanism": number} for name, number in deleted or []],
        upsertions=[
            {
                "name": name,
                "mechanism": number,
                "iterations": iterations,
                "salt": b"salt",
                "salted_password": b"p" * 32,
            }
            for name, number, iterations in upsertions
        ],
    )


STEPS: list[Step] = [
    _described(),
    _described("alice"),
    _described("alice", "alice"),
    _described(""),
    ask("DescribeUserScramCredentials", users=None),
    _alter(),
    _alter(("alice", SHA_256, 4096)),
    _alter(("alice", SHA_512, 8192)),
    _alter(("bob", SHA_256, 4095)),
    _alter(("bob", SHA_512, 4095)),
    _alter(("bob", SHA_256, 16384)),
    _alter(("bob", SHA_256, 16385)),
    _alter(("bob", 3, 4096)),
    _alter(("bob", 0, 1)),
    _alter(("", SHA_256, 4096)),
    _alter(("", 9, 4096)),
    _alter(deleted=[("bob", SHA_256)]),
    _alter(deleted=[("bob", SHA_256)]),
    _alter(deleted=[("bob", 9)]),
    _alter(deleted=[("", SHA_256)]),
    _alter(("al", SHA_256, 4096), ("al", SHA_256, 4096)),
    _alter(("al", SHA_256, 4096), ("al", SHA_512, 1)),
    _alter(("al", SHA_256, 1), ("al", SHA_512, 4096)),
    _alter(("al", SHA_256, 4096), deleted=[("al", SHA_256)]),
    _alter(("alice", SHA_256, 4096), deleted=[("alice", SHA_512)]),
    _alter(("alice", SHA_256, 1), deleted=[("alice", SHA_512)]),
    _alter(deleted=[("alice", SHA_512), ("alice", SHA_256)]),
    _alter(deleted=[("alice", SHA_512), ("alice", SHA_512)]),
    _alter(("al", SHA_256, 4096), ("zoe", SHA_256, 1), deleted=[("who", 2), ("who", 9)]),
    ask("DescribeUserScramCredentials", users=None),
    _described(),
    _described("alice", "bob"),
    _alter(deleted=[("alice", SHA_512)]),
    _described("alice"),
    _alter(deleted=[("alice", SHA_256)]),
    _described("alice"),
]
