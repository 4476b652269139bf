"""Client metrics subscriptions, and the list of all that can be configured."""

from __future__ import annotations

from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

METRICS = 16
SET, DELETE, APPEND = 0, 1, 2


def _alter(name: str, *configs: tuple[str, int, str | None], dry: bool = False) -> Step:
    given = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in configs
    ]
    resource = {"resource_type": METRICS, "resource_name": name, "configs": given}
    return ask("IncrementalAlterConfigs", resources=[resource], validate_only=dry)


def _described(name: str) -> Step:
    resource = {"resource_type": METRICS, "resource_name": name, "configuration_keys": None}
    return ask("DescribeConfigs", resources=[resource], include_synonyms=True)


def _listed(*types: int) -> Step:
    return ask("ListConfigResources", 1, "4.1", resource_types=types)


STEPS: list[Step] = [
    ask("ListConfigResources", 0),
    _alter("m1", ("interval.ms", SET, "60000"), ("metrics", SET, "org.apache,a.b")),
    _alter("m1", ("match", SET, "client_id=x.*,client_source_port=1")),
    _described("m1"),
    ask("ListConfigResources", 0),
    _listed(),
    *(_listed(kind) for kind in (METRICS, 32, 2, 4, 8, 99, 0)),
    _listed(2, 32),
    _alter("m2", ("interval.ms", SET, "10")),
    _alter("m2", ("interval.ms", SET, "x")),
    _alter("m2", ("interval.ms", SET, "3600001")),
    _alter("m2", ("nope", SET, "x")),
    _alter("m2", ("match", SET, "foo")),
    _alter("m2", ("match", SET, "foo=x")),
    _alter("m2", ("match", SET, "client_id=[")),
    _alter("m2", ("match", SET, "")),
    _alter("", ("interval.ms", SET, "100")),
    _alter("m2", ("metrics", APPEND, "a")),
    _alter("m2", ("interval.ms", APPEND, "a")),
    _alter("m2", ("interval.ms", SET, "100"), dry=True),
    _described("m2"),
    _described("m9"),
    _alter("m1", ("interval.ms", DELETE, None), ("metrics", DELETE, None)),
    _described("m1"),
    _alter("m1", ("match", DELETE, None)),
    ask("ListConfigResources", 0),
    ask(
        "AlterConfigs",
        resources=[
            {
                "resource_type": METRICS,
                "resource_name": "m1",
                "configs": [{"name": "interval.ms", "value": "1000"}],
            }
        ],
        validate_only=False,
    ),
    _described("m1"),
]
