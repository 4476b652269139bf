"""No circle of imports: neither of files, nor of the folders and files that lie side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.tidy.source_tree import modules_imported_by, product_modules

Graph = dict[str, dict[str, str]]
"""Who imports whom, with one place in the code for each."""


def _edges() -> list[tuple[str, str, str]]:
    """Importer, imported, place."""
    return [
        (module.name, name, f"{module.path}:{line}")
        for module in product_modules()
        for name, line in modules_imported_by(module)
    ]


def _circle(graph: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One circle, as the places that make it; nothing when there is none."""
    done: set[str] = set()
    for start in sorted(graph):
        path: list[str] = []
        found = _walk(graph, start, path, done)
        if found:
            return found
    return []


def _walk(
    graph: Mapping[str, Mapping[str, str]], node: str, path: list[str], done: set[str]
) -> list[str]:
    if node in path:
        ring = [*path[path.index(node) :], node]
        return [f"{graph[a][b]}: {a} imports {b}" for a, b in itertools.pairwise(ring)]
    if node in done:
        return []
    path.append(node)
    for following in sorted(graph.get(node, {})):
        found = _walk(graph, following, path, done)
        if found:
            return found
    path.pop()
    done.add(node)
    return []


def _side_by_side() -> dict[str, Graph]:
    """For each folder: its files and folders, and which of them imports which. A package's own
    ``__init__`` hands names on and stands in no folder but its parent's."""
    graphs: dict[str, Graph] = {}
    for importer, imported, place in _edges():
        a, b = importer.split("."), imported.split(".")
        shared = 0
        while shared < min(len(a), len(b)) and a[shared] == b[shared]:
            shared += 1
        if shared in (0, len(a), len(b)):
            continue  # two packages (test_layers), or a package and what lies in it
        folder = ".".join(a[:shared])
        rooms = graphs.setdefault(folder, {})
        rooms.setdefault(".".join(a[: shared + 1]), {}).setdefault(".".join(b[: shared + 1]), place)
    return graphs


def test_no_circle_of_files() -> None:
    graph: Graph = {}
    for importer, imported, place in _edges():
        graph.setdefault(importer, {}).setdefault(imported, place)
    assert not (found := _circle(graph)), "\n".join(found)


def test_no_circle_of_folders() -> None:
    for folder, rooms in sorted(_side_by_side().items()):
        assert not (found := _circle(rooms)), f"in {folder}:\n" + "\n".join(found)
