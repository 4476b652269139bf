"""Releases are compared as ``ReleaseLine``: as texts, 4.10 would come before 4.9."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.tidy.source_tree import Module, modules, product_modules

RELEASE = re.compile(r"\d+(\.\d+)+")
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
KNOW_LINES = (
    "mock_coordinator.core.release_line",
    "mock_coordinator.core.profile",
    "mock_coordinator.core.profiles",
    "mock_coordinator.core.settings",
    "mock_coordinator.core.apis.configs.described_configs",
)
"""Where a product module may ask for the line at all; everything else asks a profile's facts."""


def _orders_by_text(module: Module) -> Iterator[int]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Compare) and any(isinstance(op, ORDERS) for op in node.ops):
            for side in (node.left, *node.comparators):
                match side:
                    case ast.Constant(value=str(text)) if RELEASE.fullmatch(text):
                        yield node.lineno
                    case ast.Attribute(value=ast.Name(id="profile"), attr="name"):
                        yield node.lineno
                    case ast.Attribute(value=ast.Attribute(attr="profile"), attr="name"):
                        yield node.lineno
                    case _:
                        pass


def test_no_release_is_compared_as_a_text() -> None:
    found = [f"{module.path}:{line}" for module in modules() for line in _orders_by_text(module)]
    assert not found, f"compare ReleaseLine.of(..): {found}"


def test_what_differs_by_release_is_a_fact_of_the_profile() -> None:
    found = [
        f"{module.path}:{node.lineno}"
        for module in product_modules()
        if not module.within(*KNOW_LINES)
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Name) and node.id == "ReleaseLine")
        or (
            isinstance(node, ast.Attribute)
            and node.attr == "line"
            and "profile" in ast.unparse(node.value)
        )
    ]
    assert not found, f"give Profile a field for it: {found}"
