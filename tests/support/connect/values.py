"""Random values of Kafka Connect's embedded protocol."""

from __future__ import annotations

from hypothesis import strategies as st

from kip848_client.core.connect import ConnectorTaskId, Items, WorkerAssignment, WorkerMetadata

__all__ = ["assignments", "metadata", "names", "tidy_items"]

names = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=12
) | st.sampled_from(["A", "B", "source", "sink-1", "Ünïcode", "\U0001f600", "Aa", "BB"])
_OFFSETS = st.integers(-1, 2**63 - 1)
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)


@st.composite
def tidy_items(draw: st.DrawFn) -> Items:
    """Connectors and tasks, each at most once, in any order."""
    connectors = draw(st.lists(names, unique=True, max_size=6))
    pool = connectors + draw(st.lists(names, max_size=3))
    task = st.tuples(st.sampled_from(pool or ["A"]), st.integers(0, 2**31 - 1) | st.integers(0, 9))
    tasks = draw(st.lists(task, unique=True, max_size=12))
    return Items(tuple(connectors), tuple(ConnectorTaskId(*each) for each in tasks))


@st.composite
def assignments(draw: st.DrawFn, version: int | None = None) -> WorkerAssignment:
    """An assignment of any version; what its version has no place for is not in it."""
    version = draw(st.integers(0, 2)) if version is None else version
    said = WorkerAssignment(
        draw(_TEXTS),
        draw(_TEXTS),
        draw(_OFFSETS),
        draw(tidy_items()),
        error=draw(st.sampled_from([0, 1])),
        version=version,
    )
    if version == 0:
        return said
    return WorkerAssignment(
        said.leader,
        said.leader_url,
        said.config_offset,
        said.assigned,
        draw(tidy_items()),
        draw(st.integers(0, 2**31 - 1)),
        said.error,
        version,
    )


@st.composite
def metadata(draw: st.DrawFn) -> WorkerMetadata:
    """Metadata of any version, with or without an allocation."""
    version = draw(st.integers(0, 2))
    runs = draw(st.none() | assignments(version)) if version else None
    return WorkerMetadata(draw(_TEXTS), draw(_OFFSETS), runs, version)
