"""Tests wait on state, not on the clock: positive literal sleeps are for integration only."""

from __future__ import annotations

import ast

from tests.tidy.source_tree import modules

MAY_SLEEP = (
    "tests.integration",
    "tests.support",
    "tests.differential",
    "tests.scenarios",
    "benchmarks",
)


def test_no_test_sleeps_a_fixed_time() -> None:
    for module in modules():
        if not module.name.startswith("tests.") or module.within(*MAY_SLEEP):
            continue
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            if name.endswith("sleep") and node.args and isinstance(node.args[0], ast.Constant):
                assert node.args[0].value == 0, f"{module.path}:{node.lineno}: {ast.unparse(node)}"
