"""What code, tests and pages refer to is there: pages, decisions, scenarios, links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.source_tree import ROOT, modules

DOCS = ROOT / "docs"
SCENARIOS = ROOT / "tests" / "scenarios" / "coordinator"

DECISION = re.compile(r"\b[Dd]ecisions? \(?(?P<number>\d+(?:\.\d+)*)")
PAGE = re.compile(r"(?<!tools/)\bdocs/[\w/.-]*\w")
SCENARIO = re.compile(r"(?<![\w/-])(?P<number>[CFSW]\d\d[a-z]?)\b")
LINK = re.compile(r"\]\((?!\w+://|#|mailto:)(?P<target>[^)#\s]+)(?:#[^)]*)?\)")
BRACKET = re.compile(r"\A\s*\[\d+(?:, \d+)*\]|\brows? \[\d+\]")
"""A number in brackets at the start of a docstring: a row of some table."""


def _pages() -> list[Path]:
    tops = [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "tests").rglob("*.md")]
    return sorted(tops)


def _texts() -> Iterator[tuple[Path, str]]:
    """Everything that people read: pages and Python files."""
    for page in _pages():
        yield page, page.read_text(encoding="utf-8")
    for module in modules():
        if module.name != __name__:
            yield module.path, module.text


def _lines(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for path, text in _texts():
        for number, line in enumerate(text.splitlines(), 1):
            for found in pattern.finditer(line):
                yield f"{path.relative_to(ROOT)}:{number}", found


def test_a_decision_has_its_page() -> None:
    there = {int(page.name[:4]) for page in (DOCS / "decisions").glob("[0-9]*.md")}
    lost = [
        f"{where}: {found[0]}"
        for where, found in _lines(DECISION)
        if not found["number"].isdigit() or int(found["number"]) not in there
    ]
    assert not lost, "\n".join(lost)


def test_a_page_that_is_named_is_there() -> None:
    lost = [
        f"{where}: {found[0]}"
        for where, found in _lines(PAGE)
        if not list(ROOT.glob(found[0] + "*")) and "4_5" not in found[0]
    ]
    assert not lost, "\n".join(lost)


def test_a_link_leads_somewhere() -> None:
    lost = [
        f"{page.relative_to(ROOT)}: {found['target']}"
        for page in _pages()
        for found in LINK.finditer(page.read_text(encoding="utf-8"))
        if not (page.parent / found["target"]).exists()
    ]
    assert not lost, "\n".join(lost)


def test_a_scenario_that_is_cited_is_there() -> None:
    there = {path.name.split("_")[0] for path in SCENARIOS.glob("*.txt")}
    lost = [
        f"{where}: {found['number']}"
        for where, found in _lines(SCENARIO)
        if found["number"] not in there
    ]
    assert not lost, "\n".join(lost)


def test_a_docstring_begins_with_no_number_of_a_table() -> None:
    lost = [
        f"{module.path}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and BRACKET.search(node.value.value)
    ]
    assert not lost, "\n".join(lost)


def test_a_file_that_the_readme_of_a_folder_names_is_there() -> None:
    """Names are relative to the folder, or to the repository."""
    readmes = [
        page for top in ("src", "mock_coordinator") for page in (ROOT / top).rglob("README.md")
    ]
    lost = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in readmes
        for name in re.findall(
            r"`([\w./]+(?:\.(?:py|c|h|sql)|/))`", page.read_text(encoding="utf-8")
        )
        if not any(
            (folder / name).exists() for folder in (page.parent, ROOT, ROOT / "src/kip848_client")
        )
    ]
    assert not lost, "\n".join(lost)


def test_each_folder_of_the_first_two_levels_has_a_readme() -> None:
    tops = [ROOT / "src" / "kip848_client", ROOT / "mock_coordinator"]
    folders = [each for top in tops for depth in ("*", "*/*") for each in top.glob(depth)]
    lacking = [
        str(each.relative_to(ROOT))
        for each in folders
        if (each / "__init__.py").exists() and not (each / "README.md").exists()
    ]
    assert not lacking, "\n".join(sorted(lacking))
