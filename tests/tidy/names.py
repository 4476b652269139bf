"""Resolves dotted names of ours to modules and what is in them, by the sources alone: nothing is
imported, so that a name in an optional part is checked without its libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from tests.tidy.source_tree import ROOT, modules

__all__ = ["TOPS", "resolves"]

TOPS = ("kip848_client", "mock_coordinator", "pyspark_kip848", "tests", "benchmarks")
_OF_EVERY_MODULE = frozenset(["__doc__", "__file__", "__name__", "__path__"])


@cache
def _trees() -> dict[str, ast.Module]:
    """By module; the stub of an extension stands for it."""
    trees = {module.name: module.tree for module in modules()}
    source = ROOT / "src"
    for path in [*source.rglob("*.pyi"), *source.glob("pyspark_*/__init__.py")]:
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


@cache
def _modules_and_folders() -> frozenset[str]:
    """``tests`` has folders without an ``__init__``: a name that leads to one is fine."""
    parts = [name.split(".") for name in _trees()]
    return frozenset(".".join(each[:end]) for each in parts for end in range(1, len(each) + 1))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of the body, and of each ``if``, ``try`` or ``with`` in it."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With | ast.For):
            inner: list[ast.stmt] = []
            for child in ast.iter_child_nodes(node):
                inner += child.body if isinstance(child, ast.ExceptHandler) else []
                inner += [child] if isinstance(child, ast.stmt) else []
            yield from _statements(inner)


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Each name that these statements bind, and the statement that does."""
    for node in _statements(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name).split(".")[0], node
        else:
            for child in ast.walk(node):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                    yield child.id, node


@cache
def _names_in(module: str) -> dict[str, ast.stmt]:
    return dict(_bound(_trees()[module].body))


def _is_in(node: ast.stmt, rest: list[str]) -> bool:
    """Whether a class has this attribute. What it inherits, and what is no class, is not known."""
    if not rest or not isinstance(node, ast.ClassDef) or node.bases:
        return True
    set_by_methods = {
        child.attr
        for child in ast.walk(node)
        if isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store)
    }
    return rest[0] in set_by_methods | dict(_bound(node.body)).keys() or rest[0][:2] == "__"


def resolves(name: str) -> bool:
    """Whether a dotted name that begins with one of ``TOPS`` names a module of ours, or something
    in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        module, rest = ".".join(parts[:end]), parts[end:]
        if module not in _modules_and_folders():
            continue
        if not rest or rest[0] in _OF_EVERY_MODULE:
            return True
        if module not in _trees():
            return False
        found = _names_in(module).get(rest[0])
        return found is not None and _is_in(found, rest[1:])
    return False
