"""Sizes, exports, headers: what lets a newcomer find a file and read it in one go."""

from __future__ import annotations

import ast
import re

import pytest

from kip848_client.cli import COMMANDS
from tests.tidy.source_tree import ROOT, Module, imports_of, modules, product_modules

MODULE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100

EVERY = pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
SHIPPED = pytest.mark.parametrize("module", product_modules(), ids=lambda module: module.name)


@EVERY
def test_a_module_fits_its_room(module: Module) -> None:
    lines = module.text.splitlines()
    assert len(lines) < MODULE_LINES_MAX, f"{module.path} has {len(lines)} lines; split it by idea"
    for number, line in enumerate(lines, 1):
        assert len(line) <= COLUMNS_MAX, f"{module.path}:{number} has {len(line)} columns"


@EVERY
def test_a_function_fits_a_screen(module: Module) -> None:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            assert size < FUNCTION_LINES_MAX, (
                f"{module.path}:{node.lineno} {node.name}: {size} lines"
            )


@SHIPPED
def test_a_module_says_its_idea_and_its_names(module: Module) -> None:
    assert ast.get_docstring(module.tree), f"{module.path} has no docstring"
    assert "from __future__ import annotations" in module.text or not module.tree.body[1:]
    exported = _exported(module)
    if module.path.name == "__main__.py" and exported is None:
        return
    if module.is_package and not module.tree.body[1:]:
        return
    assert exported is not None, f"{module.path} has no __all__"
    assert len(set(exported)) == len(exported)


def _exported(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None:
                value = ast.literal_eval(node.value)
                return list(value)
    return None


@SHIPPED
def test_every_module_is_used(module: Module) -> None:
    """A file that nobody imports is a leftover, unless Python itself runs it, or ``kip848`` does
    by the name of a subcommand."""
    if module.path.name in {"__main__.py", "__init__.py", "pytest_plugin.py", "diagram.py"}:
        return
    if module.name in {f"kip848_client.cli.{name}" for name in COMMANDS}:
        return
    users = [
        other.name
        for other in product_modules()
        if other is not module
        and any(
            name == module.name or (module.name.startswith(name + ".") and _names(other, module))
            for name, _ in imports_of(other)
        )
    ]
    assert users, f"{module.path} is imported by no shipped module"


def _names(importer: Module, imported: Module) -> bool:
    last = imported.name.rsplit(".", 1)[1]
    return bool(re.search(rf"\b{re.escape(last)}\b", importer.text))


@EVERY
def test_every_switched_off_check_gives_its_reason(module: Module) -> None:
    pattern = re.compile(
        r"#\s*(type:\s*ignore|noqa|pyright:\s*ignore)(\[[^\]]*\]|:\s*[A-Z0-9, ]+)?(.*)"
    )
    for number, line in enumerate(module.text.splitlines(), 1):
        if module.name.endswith("tidy.test_shape"):
            continue
        found = pattern.search(line)
        if found:
            where = f"{module.path}:{number}"
            assert found.group(2), f"{where}: names no rule"
            assert len(found.group(3).strip(" -#")) > 8, f"{where}: gives no reason"


def test_the_repository_speaks_of_the_project_alone() -> None:
    """No path of somebody's machine, no address of a package mirror."""
    forbidden = re.compile(
        r"/(?:work|home|root|Users)/[a-z]|https?://[^ ]*(?:proxy|mirror|artifactory)"
    )
    for path in sorted(ROOT.rglob("*")):
        if not path.is_file() or path.suffix not in {".py", ".md", ".toml", ".txt", ".cfg", ""}:
            continue
        relative = path.relative_to(ROOT)
        hidden = relative.parts[0].startswith(".") and relative.parts[0] != ".ci"
        if hidden or relative.parts[0] in {"build", "dist"}:
            continue
        if path.name == "test_shape.py":
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        for number, line in enumerate(text.splitlines(), 1):
            assert not forbidden.search(line), f"{relative}:{number}: {line.strip()[:80]}"
