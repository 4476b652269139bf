"""Sizes, exports, headers: what lets a newcomer find a file and read it in one go."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping

from kip848_client.cli import COMMANDS
from tests.tidy.source_tree import (
    ROOT,
    Module,
    c_files,
    imports_of,
    modules,
    modules_imported_by,
    product_modules,
)

MODULE_LINES_MAX = 900
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100
SHORT_LINES = 40
SHORT_MODULES = 11
"""Modules of fewer lines that a single module imports. Lower the number when you fold one."""

OF_USERS = {
    "kip848_client.otel",
    "kip848_client.prometheus",
    "kip848_client.schema_registry",
}
"""Modules that users import by name, and the package does not: they need an extra."""


def test_a_module_is_not_too_long() -> None:
    wrong: list[str] = []
    texts = {module.path: module.text for module in modules()}
    texts |= {file.path: file.text for file in c_files()}
    for path, text in texts.items():
        lines = text.splitlines()
        if len(lines) >= MODULE_LINES_MAX:
            wrong.append(f"{path} has {len(lines)} lines; split it by idea")
        wrong += [
            f"{path}:{number} has {len(line)} columns"
            for number, line in enumerate(lines, 1)
            if len(line) > COLUMNS_MAX
        ]
    assert not wrong, "\n".join(wrong)


def test_few_short_modules_have_one_importer() -> None:
    """A reader finds an idea sooner where it is used."""
    importers: dict[str, set[str]] = {}
    for module in product_modules():
        for name, _ in modules_imported_by(module):
            importers.setdefault(name, set()).add(module.name)
    short = [
        f"{module.path}: imported by {', '.join(importers[module.name])} alone"
        for module in product_modules()
        if not module.is_package
        and module.text.count("\n") < SHORT_LINES
        and len(importers.get(module.name, ())) == 1
    ]
    assert len(short) <= SHORT_MODULES, "\n".join(short)


def test_a_function_fits_a_screen() -> None:
    wrong: list[str] = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.lineno + 1
                if size >= FUNCTION_LINES_MAX:
                    wrong.append(f"{module.path}:{node.lineno} {node.name}: {size} lines")
    for file in c_files():
        wrong += [
            f"{file.path}:{line} {name}: {size} lines"
            for name, line, size in file.functions()
            if size >= FUNCTION_LINES_MAX
        ]
    assert not wrong, "\n".join(wrong)


def test_a_file_of_c_says_its_idea_and_is_used() -> None:
    silent = [file.path.name for file in c_files() if not file.text.startswith("/* ")]
    assert not silent, f"these begin with no comment: {', '.join(silent)}"
    headers = {file.path for file in c_files() if file.path.suffix == ".h"}
    read = {path for file in c_files() for path in file.includes}
    assert headers == read, f"read by nobody, or not there: {headers ^ read}"


def test_a_module_says_its_idea_and_its_names() -> None:
    wrong: list[str] = []
    for module in product_modules():
        has_code = bool(module.tree.body[1:])
        if not ast.get_docstring(module.tree):
            wrong.append(f"{module.path} has no docstring")
        if has_code and "from __future__ import annotations" not in module.text:
            wrong.append(f"{module.path} has no future import of annotations")
        exported = _exported(module)
        if exported is not None and len(set(exported)) != len(exported):
            wrong.append(f"{module.path} exports a name twice")
        needs_none = module.path.name == "__main__.py" or (module.is_package and not has_code)
        if exported is None and not needs_none:
            wrong.append(f"{module.path} has no __all__")
    assert not wrong, "\n".join(wrong)


def _exported(module: Module) -> list[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None:
                value = ast.literal_eval(node.value)
                return list(value)
    return None


def test_every_module_is_used() -> None:
    """A file that nobody imports is a leftover, unless Python itself runs it, or ``kip848`` does
    by the name of a subcommand."""
    importers: dict[str, list[Module]] = {}
    for module in product_modules():
        for name in {name for name, _ in imports_of(module)}:
            importers.setdefault(name, []).append(module)
    unused = [str(module.path) for module in product_modules() if not _is_used(module, importers)]
    assert not unused, f"imported by no shipped module: {', '.join(unused)}"


def _is_used(module: Module, importers: Mapping[str, Collection[Module]]) -> bool:
    if module.path.name in {"__main__.py", "__init__.py", "pytest_plugin.py"}:
        return True
    if module.name in {f"kip848_client.cli.{name}" for name in COMMANDS} | OF_USERS:
        return True
    if any(other is not module for other in importers.get(module.name, ())):
        return True
    parts = module.name.split(".")
    packages = (".".join(parts[:depth]) for depth in range(1, len(parts)))
    return any(
        other is not module and _names(other, module)
        for package in packages
        for other in importers.get(package, ())
    )


def _names(importer: Module, imported: Module) -> bool:
    last = imported.name.rsplit(".", 1)[1]
    return bool(re.search(rf"\b{re.escape(last)}\b", importer.text))


def test_every_switched_off_check_gives_its_reason() -> None:
    pattern = re.compile(
        r"#\s*(type:\s*ignore|noqa|pyright:\s*ignore)(\[[^\]]*\]|:\s*[A-Z0-9, ]+)?(.*)"
    )
    wrong: list[str] = []
    for module in modules():
        if module.name.endswith("tidy.test_shape"):
            continue
        for number, line in enumerate(module.text.splitlines(), 1):
            found = pattern.search(line) if "#" in line else None
            if found and not found.group(2):
                wrong.append(f"{module.path}:{number}: names no rule")
            if found and len(found.group(3).strip(" -#")) <= 8:
                wrong.append(f"{module.path}:{number}: gives no reason")
    assert not wrong, "\n".join(wrong)


def test_the_repository_speaks_of_the_project_alone() -> None:
    """No path of somebody's machine, no address of a package mirror."""
    forbidden = re.compile(
        r"/(?:work|home|root|Users)/[a-z]|https?://[^ \n]*(?:proxy|mirror|artifactory)"
    )
    tops = [
        top
        for top in ROOT.iterdir()
        if top.name == ".ci" or (top.name[0] != "." and top.name not in {"build", "dist"})
    ]
    for path in sorted(each for top in tops for each in (top, *top.rglob("*"))):
        if path.suffix not in {".py", ".md", ".toml", ".txt", ".cfg", ""} or not path.is_file():
            continue
        if path.name == "test_shape.py":
            continue
        text = path.read_text(encoding="utf-8", errors="ignore")
        found = forbidden.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found and found[0]}"
