"""``docs/reference/metrics.md`` says what the table in the code says."""

from __future__ import annotations

from kip848_client.observe.core.metrics import TABLE
from tools.docs.metrics.java import ABSENT, JAVA, why_absent


def test_each_metric_of_javas_client_is_here_or_says_why_not() -> None:
    ours = {(row.group, _of(row.labels), name) for row in TABLE for name in row.names}
    used: set[str | None] = set()
    for (group, of), names in JAVA.items():
        for name in names:
            why = why_absent(group, of, name)
            used.add(why)
            is_here = (group, of, name) in ours
            assert is_here == (why is None), f"{group} {name} {of}: {why}"
    assert used - {None} == set(ABSENT.values())


def test_what_is_not_said_to_be_ours_is_javas() -> None:
    java = {(group, of, name) for (group, of), names in JAVA.items() for name in names}
    for row in TABLE:
        for name in row.names:
            assert row.ours != ((row.group, _of(row.labels), name) in java), f"{row.group} {name}"


def _of(labels: tuple[str, ...]) -> str:
    """One of what the labels name, the smallest thing."""
    kinds = {"partition": "partition", "topic": "topic", "node-id": "node"}
    return next((kind for label, kind in kinds.items() if label in labels), "")
