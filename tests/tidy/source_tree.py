"""The source files as the tidy tests see them: paths, parsed trees, import edges."""

from __future__ import annotations

import ast
import contextlib
import gc
import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = [
    "ROOT",
    "CFile",
    "Module",
    "c_files",
    "imports_of",
    "modules",
    "modules_imported_by",
    "names_imported_by",
    "product_modules",
]

ROOT = Path(__file__).resolve().parents[2]
_PRODUCT = {
    "kip848_client": ROOT / "src" / "kip848_client",
    "mock_coordinator": ROOT / "mock_coordinator",
}
_OTHERS = ("tests", "benchmarks", "examples", "tools")
_C_FUNCTION = re.compile(r"^(?P<name>\w+)\([^;{}]*\)\n\{.*?^\}", re.MULTILINE | re.DOTALL)
_C_INCLUDE = re.compile(r'^#include "(?P<name>[^"]+)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Module:
    """One source file: dotted name, path, text, syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    def within(self, *packages: str) -> bool:
        """Whether this is one of the packages, or inside one."""
        return any(self.name == name or self.name.startswith(name + ".") for name in packages)


@dataclass(frozen=True, slots=True)
class CFile:
    """A source file of our C extension, or a header of it."""

    path: Path
    text: str

    @property
    def includes(self) -> tuple[Path, ...]:
        """Which of our headers it reads."""
        return tuple(self.path.parent / found["name"] for found in _C_INCLUDE.finditer(self.text))

    def functions(self) -> Iterator[tuple[str, int, int]]:
        """The name of each, its line, and how many lines it has; the line before is its type."""
        for found in _C_FUNCTION.finditer(self.text):
            line = self.text.count("\n", 0, found.start()) + 1
            yield found["name"], line, found[0].count("\n") + 2


@cache
def c_files() -> tuple[CFile, ...]:
    """Every file of C of the repository."""
    paths = [path for folder in _PRODUCT.values() for path in folder.rglob("*.[ch]")]
    return tuple(CFile(path, path.read_text(encoding="utf-8")) for path in sorted(paths))


@contextlib.contextmanager
def _kept() -> Generator[None]:
    """The trees stay until the end, and are millions of objects: Python's collector rests while
    they are made, which takes a third of the time then, and passes by them in all later tests."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def _read(path: Path, name: str) -> Module:
    text = path.read_text(encoding="utf-8")
    return Module(name, path, text, ast.parse(text, str(path)))


@cache
def product_modules() -> tuple[Module, ...]:
    """Every module that a user installs."""
    found: list[Module] = []
    with _kept():
        for package, folder in _PRODUCT.items():
            for path in sorted(folder.rglob("*.py")):
                parts = [package, *path.relative_to(folder).with_suffix("").parts]
                if parts[-1] == "__init__":
                    parts.pop()
                found.append(_read(path, ".".join(parts)))
    return tuple(found)


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file of the repository."""
    found = list(product_modules())
    with _kept():
        for top in _OTHERS:
            found.extend(
                _read(path, ".".join(path.relative_to(ROOT).with_suffix("").parts))
                for path in sorted((ROOT / top).rglob("*.py"))
            )
    return tuple(found)


@cache
def imports_of(module: Module, *, module_level_only: bool = False) -> tuple[tuple[str, int], ...]:
    """``(dotted module, line)`` of each import; those under ``if TYPE_CHECKING`` couple too."""
    return tuple(
        (name, line) for name, _, line in _imports_of(module, module_level_only=module_level_only)
    )


@cache
def names_imported_by(module: Module) -> tuple[tuple[str, int], ...]:
    """``(dotted name, line)`` of each: ``from uuid import UUID`` is ``uuid.UUID``."""
    return tuple((whole, line) for _, whole, line in _imports_of(module, module_level_only=False))


@cache
def modules_imported_by(module: Module) -> tuple[tuple[str, int], ...]:
    """``(product module, line)`` of each import: ``from package import module`` is the module."""
    known = {each.name for each in product_modules()}
    found = [
        (whole if whole in known else name, line)
        for name, whole, line in _imports_of(module, module_level_only=False)
    ]
    return tuple((name, line) for name, line in found if name in known and name != module.name)


def _imports_of(module: Module, *, module_level_only: bool) -> Iterator[tuple[str, str, int]]:
    """The module that is named, the name inside it with the module before it, and the line."""
    nodes: Iterator[ast.AST] = (
        _walk_without_functions(module.tree) if module_level_only else ast.walk(module.tree)
    )
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.path}:{node.lineno}: relative import"
            assert node.module is not None
            for alias in node.names:
                yield node.module, f"{node.module}.{alias.name}", node.lineno


def _walk_without_functions(tree: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
            yield from _walk_without_functions(child)
