"""What a pure core may not touch (ARCHITECTURE.md, "Layers"): no clock, no I/O, no randomness."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy.source_tree import Module, modules_imported_by, names_imported_by, product_modules

PURE_BESIDE = (
    "kip848_client.errors",
    "kip848_client.error_codes",
    "kip848_client.serialization",
    "kip848_client.spark.pipeline._errors",
    "mock_coordinator.connection",
)
"""Pure modules that no folder named ``core`` holds."""


def is_pure(module: Module) -> bool:
    """No clock, no I/O, no randomness in here: time is an argument, commands go out."""
    return "core" in module.name.split(".") or module.within(*PURE_BESIDE)


IMPURE = frozenset(
    [
        "_thread",
        "aiokafka",
        "anyio",
        "asyncio",
        "concurrent",
        "contextvars",
        "datetime",
        "glob",
        "http",
        "logging",
        "multiprocessing",
        "os",
        "pathlib",
        "pydantic",
        "queue",
        "random",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "transitions",
        "trio",
        "urllib",
        "uuid",
        "zoneinfo",
    ]
)

HARMLESS = frozenset(["os.path.commonprefix", "uuid.UUID"])
"""Of impure modules: a function of texts, a value. Each has to be imported by its name."""

READS_THE_ENVIRONMENT = {"kip848_client.core.extensions"}
"""Once, when it is imported: whether faster ways to the same results may be used."""

IMPORTS_SETTINGS = {("kip848_client.spark.source.core._options", "kip848_client.config")}
"""The options of Spark's source check Kafka's properties by the table of the settings."""

GUARDED = 540
"""The number of pure modules does not fall below this."""

BANNED = frozenset(["__import__", "hash", "id", "input", "open", "print"])
BANNED_METHODS = frozenset(["now", "today", "urandom", "utcnow", "uuid1", "uuid4"])


def _pure(modules: Iterable[Module]) -> Iterator[Module]:
    """Those that are guarded."""
    return (
        module for module in modules if is_pure(module) and module.name not in READS_THE_ENVIRONMENT
    )


def impure_imports(modules: Iterable[Module]) -> list[str]:
    """Those of pure modules, each with its place."""
    return [
        f"{module.path}:{line}: a pure core imports {name}"
        for module in _pure(modules)
        for name, line in names_imported_by(module)
        if name.split(".")[0] in IMPURE and name not in HARMLESS
    ]


def impure_calls(modules: Iterable[Module]) -> list[str]:
    """Those of pure modules, each with its place."""
    found: list[str] = []
    for module in _pure(modules):
        functions = frozenset() if module.name.endswith("__main__") else BANNED
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                method = called.rpartition(".")[2] if isinstance(node.func, ast.Attribute) else ""
                if called in functions or (method in BANNED_METHODS and "clock" not in called):
                    found.append(f"{module.path}:{node.lineno}: a pure core calls {called}()")
    return found


def _planted(name: str, text: str) -> list[Module]:
    """A module of this name that has this text alone."""
    return [Module(name, Path("planted.py"), text, ast.parse(text))]


def test_the_exceptions_name_modules() -> None:
    """An entry whose module was renamed would guard nothing, and say nothing."""
    lost = {*PURE_BESIDE, *READS_THE_ENVIRONMENT} - {module.name for module in product_modules()}
    assert not lost, f"there are no modules of these names: {sorted(lost)}"


def test_no_pure_module_has_left_its_folder() -> None:
    """If you delete pure modules, lower the number."""
    assert len(list(_pure(product_modules()))) >= GUARDED


def test_what_says_that_it_is_pure_is_guarded() -> None:
    says = re.compile(r"(?:^|[.:;] )[Pp]ure(?:[.:;]|$)")
    lost = [
        f"{module.path} says that it is pure, and it is not in a folder named core"
        for module in product_modules()
        if says.search(" ".join((ast.get_docstring(module.tree) or "").split()))
        and not is_pure(module)
    ]
    assert not lost, "\n".join(lost)


def test_a_pure_module_imports_nothing_impure() -> None:
    assert not (wrong := impure_imports(product_modules())), "\n".join(wrong)


def test_a_pure_module_imports_none_of_ours_that_is_not() -> None:
    """What it imports may wait or read a clock in its stead."""
    by_name = {module.name: module for module in product_modules()}
    wrong = [
        f"{module.path}:{line}: a pure core imports {name}, which is not pure"
        for module in _pure(product_modules())
        for name, line in modules_imported_by(module)
        if not is_pure(by_name[name]) and (module.name, name) not in IMPORTS_SETTINGS
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "planted", ["import {0}", "from {0} import it", "def f() -> None:\n    import {0}.x as y"]
)
def test_an_impure_import_is_seen_in_each_pure_module(planted: str) -> None:
    """Each module with one name, and each name in one module."""
    pure = [module.name for module in _pure(product_modules())]
    pairs = [*zip(pure, itertools.cycle(sorted(IMPURE)), strict=False)]
    unseen = [
        f"{module}: {planted.format(name)}"
        for module, name in [*pairs, *((pure[0], name) for name in IMPURE)]
        if len(impure_imports(_planted(module, planted.format(name)))) != 1
    ]
    assert not unseen, "\n".join(unseen)


def test_a_harmless_name_is_no_excuse_for_its_neighbors() -> None:
    def found(line: str) -> list[str]:
        return impure_imports(_planted("kip848_client.errors", line))

    assert not found("from uuid import UUID")
    assert found("from uuid import UUID, uuid4")
    assert found("import uuid")
    assert found("from os import path")


def test_a_pure_module_calls_nothing_that_differs_between_runs() -> None:
    assert not (wrong := impure_calls(product_modules())), "\n".join(wrong)


@pytest.mark.parametrize("line", ["hash(1)", "open('x')", "a.b.now()", "__import__('time')"])
def test_an_impure_call_is_seen(line: str) -> None:
    assert impure_calls(_planted("kip848_client.errors", line))


def _set_like(node: ast.expr) -> bool:
    """Whether the expression is plainly a set: literal, comprehension, set() call, set operator on
    one of these, or a name annotated so in the same function (see ``_annotated_sets``)."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"set", "frozenset"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub):
        return _set_like(node.left) or _set_like(node.right)
    return False


def _annotated_sets(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            text = ast.unparse(node.annotation)
            target = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            if text.startswith(("set[", "frozenset[", "AbstractSet[", "Final[frozenset[")):
                names.add(target.removeprefix("self."))
    return names


def _unsorted_iterations(module: Module) -> Iterator[tuple[int, str]]:
    for scope in ast.walk(module.tree):
        if not isinstance(scope, ast.FunctionDef | ast.Module | ast.ClassDef):
            continue
        names = _annotated_sets(scope) if isinstance(scope, ast.FunctionDef) else set()
        for node in ast.walk(scope):
            iterated: list[ast.expr] = []
            if isinstance(node, ast.For):
                iterated = [node.iter]
            elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
                iterated = [generator.iter for generator in node.generators]
            for expression in iterated:
                plain = isinstance(expression, ast.Name) and expression.id in names
                if plain or _set_like(expression):
                    yield expression.lineno, ast.unparse(expression)


ORDER_FREE = ("any(", "all(", "sum(", "max(", "min(", "sorted(", "len(", "set(", "frozenset(")


def test_a_pure_module_does_not_depend_on_the_order_of_a_set() -> None:
    for module in _pure(product_modules()):
        lines = module.text.splitlines()
        for line, expression in _unsorted_iterations(module):
            here = lines[line - 1]
            if any(f"{call}" in here for call in ORDER_FREE):
                continue  # an order-free reduction, or sorted on the spot
            raise AssertionError(f"{module.path}:{line}: iterates over a set: {expression}")
