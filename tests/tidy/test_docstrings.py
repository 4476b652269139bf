"""Docstrings of public names have Args, Returns and Raises.

A name is public when an ``__all__`` of ``PACKAGES`` has it, or when it is a public method of such a
class, inherited or its own. The style is Google's. ``Raises nothing`` in the text stands for an
empty section. An override without a docstring has the docstring of what it overrides; one that ends
with ``See`` and a method has that of the method.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import pytest

from tests.tidy.source_tree import Module, product_modules

PACKAGES = (
    "kip848_client",
    "kip848_client.admin",
    "kip848_client.aiokafka",
    "kip848_client.assignors",
    "kip848_client.config",
    "kip848_client.connect",
    "kip848_client.core.client_assignors.streams",
    "kip848_client.history",
    "kip848_client.history.recording",
    "kip848_client.history.report",
    "kip848_client.observe",
    "kip848_client.otel",
    "kip848_client.prometheus",
    "kip848_client.schema_registry",
    "kip848_client.serialization",
    "kip848_client.spark",
    "kip848_client.spark.history",
    "kip848_client.spark.pipeline",
    "kip848_client.spark.pipeline.config",
    "kip848_client.testing",
)
_FIELDS = {"dataclass", "NamedTuple", "BaseModel"}
_PLAIN = {"property", "cached_property", "overload", "setter"}
_ENTRY = re.compile(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:", re.MULTILINE)
_REFERENCE = re.compile(r"See ``\w+\.\w+``\.\Z")
_GENERATORS = {"contextmanager", "asynccontextmanager"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Definition(NamedTuple):
    """A class or function, and the module it stands in."""

    module: Module
    node: ast.ClassDef | Function


@cache
def _names(module: str) -> dict[str, ast.ClassDef | Function | tuple[str, str]]:
    """What each name at the top of a module is: a definition, or ``(module, name)``."""
    found: dict[str, ast.ClassDef | Function | tuple[str, str]] = {}
    for node in _statements(_by_name()[module].tree):
        if isinstance(node, ast.ClassDef | Function):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            targets = [each.id for each in node.targets if isinstance(each, ast.Name)]
            found |= dict.fromkeys(targets, (module, node.value.id))
    return found


def _statements(tree: ast.Module | ast.If) -> Iterator[ast.stmt]:
    for node in tree.body:
        if isinstance(node, ast.If):
            yield from _statements(node)
        yield node


@cache
def _by_name() -> dict[str, Module]:
    return {module.name: module for module in product_modules()}


def _resolved(module: str, name: str) -> Definition | None:
    """Where a name is defined; None for values, and for what is not ours."""
    while module in _by_name() and f"{module}.{name}" not in _by_name():
        found = _names(module).get(name)
        if not isinstance(found, tuple):
            return None if found is None else Definition(_by_name()[module], found)
        module, name = found
    return None


def _exported(module: Module) -> list[str]:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{module.name} has no literal __all__")


def _base_names(node: ast.expr | ast.Module) -> set[str]:
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Name | ast.Attribute)
    }


def _bases(defined: Definition) -> Iterator[Definition]:
    """Our classes among the ancestors, nearest first."""
    assert isinstance(defined.node, ast.ClassDef)
    for base in defined.node.bases:
        written = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(written, ast.Name):
            found = _resolved(defined.module.name, written.id)
            if found and isinstance(found.node, ast.ClassDef):
                yield found
                yield from _bases(found)


def _decorators(node: ast.ClassDef | Function) -> set[str]:
    return {name for each in node.decorator_list for name in _base_names(each)}


def _section(text: str, title: str) -> str | None:
    """The indented lines below a title."""
    found = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)+)", text + "\n", re.MULTILINE)
    return found and found[1]


def _named(section: str | None) -> set[str]:
    """The names that begin the entries of a section: ``a:``, ``a, b:``, ``**kwargs:``."""
    starts = re.findall(
        r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: \([^)]*\))?:", section or "", re.MULTILINE
    )
    return {name.strip("* ") for start in starts for name in start.split(",")}


def _parameters(node: Function, *, bound: bool) -> set[str]:
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)][bound:]
    names += [each.arg for each in arguments.kwonlyargs]
    return {*names, *(each.arg for each in (arguments.vararg, arguments.kwarg) if each)}


def _yields(node: Function) -> bool:
    inner: list[ast.AST] = list(node.body)
    while inner:
        each = inner.pop()
        if isinstance(each, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(each, Function | ast.Lambda | ast.ClassDef):
            inner += ast.iter_child_nodes(each)
    return False


def _missing_of_function(node: Function, *, bound: bool) -> Iterator[str]:
    text = ast.get_docstring(node) or ""
    if _REFERENCE.search(text):
        return
    if unnamed := _parameters(node, bound=bound) - _named(_section(text, "Args")):
        yield f"Args of {', '.join(sorted(unnamed))}"
    if _yields(node) or _decorators(node) & _GENERATORS:
        if not (_section(text, "Yields") or _section(text, "Returns")):
            yield "Yields"
    elif (
        node.returns is not None
        and ast.unparse(node.returns) not in {"None", "Never", "NoReturn"}
        and not _section(text, "Returns")
    ):
        yield "Returns"
    if not (_section(text, "Raises") or re.search(r"Raises\s+nothing", text)):
        yield "Raises"


def _missing_of_class(defined: Definition, *, exported: bool) -> Iterator[str]:
    node = defined.node
    assert isinstance(node, ast.ClassDef)
    text = ast.get_docstring(node) or ""
    if not text:
        yield "docstring"
    ancestors = [defined, *_bases(defined)]
    kinds = {name for each in ancestors for name in _decorators(each.node)}
    for each in ancestors:
        assert isinstance(each.node, ast.ClassDef)
        kinds |= {name for base in each.node.bases for name in _base_names(base)}
    if kinds & _FIELDS:
        known = _named(_section(text, "Attributes"))
        for statement, below in zip(node.body, [*node.body[1:], None], strict=True):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and not ast.unparse(statement.annotation).startswith("ClassVar")
            ):
                name = statement.target.id
                described = (
                    isinstance(below, ast.Expr)
                    and isinstance(below.value, ast.Constant)
                    and isinstance(below.value.value, str)
                )
                if not (name.startswith("_") or name in known or described):
                    yield f"Attributes of {name}"
    for member in node.body:
        if (
            exported
            and isinstance(member, Function)
            and member.name == "__init__"
            and "overload" not in _decorators(member)
        ):
            own = ast.get_docstring(member) or ""
            named = _named(_section(text, "Args")) | _named(_section(own, "Args"))
            if unnamed := _parameters(member, bound=True) - named:
                yield f"Args of {', '.join(sorted(unnamed))}"


def _missing(defined: Definition, *, exported: bool) -> Iterator[tuple[str, int, str]]:
    """``(name, line, what)`` for a definition and, of a class, its methods."""
    node = defined.node
    if not isinstance(node, ast.ClassDef):
        for what in _missing_of_function(node, bound=False):
            yield f"{defined.module.name}.{node.name}", node.lineno, what
        return
    whole = f"{defined.module.name}.{node.name}"
    for what in _missing_of_class(defined, exported=exported):
        yield whole, node.lineno, what
    above = {
        member.name
        for base in _bases(defined)
        if isinstance(base.node, ast.ClassDef)
        for member in base.node.body
        if isinstance(member, Function) and ast.get_docstring(member)
    }
    for member in node.body:
        if (
            not isinstance(member, Function)
            or member.name.startswith("_")
            or _decorators(member) & _PLAIN
            or (member.name in above and not ast.get_docstring(member))
        ):
            continue
        for what in _missing_of_function(member, bound="staticmethod" not in _decorators(member)):
            yield f"{whole}.{member.name}", member.lineno, what


@cache
def _public() -> tuple[tuple[Definition, bool], ...]:
    """Each definition, and whether an ``__all__`` has it (or only a class that inherits)."""
    found: dict[tuple[str, str], tuple[Definition, bool]] = {}
    for package in PACKAGES:
        for name in _exported(_by_name()[package]):
            defined = _resolved(package, name)
            if defined is None:
                continue
            found[defined.module.name, defined.node.name] = defined, True
            if isinstance(defined.node, ast.ClassDef):
                for each in _bases(defined):
                    found.setdefault((each.module.name, each.node.name), (each, False))
    return tuple(found.values())


def test_the_public_names_are_found() -> None:
    found = {each.node.name for each, _ in _public()}
    assert {"Consumer", "GroupCalls", "Producer", "Admin", "Record", "MockBroker"} <= found, found


def test_docstrings_say_what_goes_in_what_comes_out_and_what_is_raised() -> None:
    missing = [
        each for defined, exported in _public() for each in _missing(defined, exported=exported)
    ]
    assert not missing, "\n".join(f"{name}:{line}: {what}" for name, line, what in missing)


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('def f(a) -> int: "F."', ["Args of a", "Returns", "Raises"]),
        ('def f(a):\n    """F.\n\n    Args:\n        a: It. Raises nothing.\n    """', []),
        (
            'def f(a):\n    """F. Raises nothing.\n\n    Args:\n        b: It.\n    """',
            ["Args of a"],
        ),
        ('def f() -> None:\n    """F. Raises nothing."""', []),
        ('def f():\n    """F. Raises nothing."""\n    yield 1', ["Yields"]),
        ('def f(a) -> int:\n    """See ``C.f``."""', []),
    ],
)
def test_what_is_missing_is_seen(text: str, missing: list[str]) -> None:
    node = ast.parse(text).body[0]
    assert isinstance(node, Function)
    assert list(_missing_of_function(node, bound=False)) == missing
