"""Names that others have written into their dashboards, log settings, tests and scripts."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from kip848_client.cli.pipeline._run import metrics_text as pipeline_text
from kip848_client.observe.core.metrics import Metrics
from kip848_client.prometheus import Collector
from kip848_client.spark.pipeline.core._status import PipelineStatus
from mock_coordinator import MockBroker
from mock_coordinator import pytest_plugin as plugin
from mock_coordinator.command import metrics_text as broker_text
from tests.tidy.source_tree import ROOT, product_modules

__all__ = ["all_names", "make", "read"]

_FILE: Final = "names.json"
_TYPE: Final = re.compile(r"^# TYPE (?P<name>\w+) (?P<kind>\w+)$", re.MULTILINE)
_SAMPLE: Final = re.compile(r"^(?P<name>\w+)\{(?P<labels>[^}]*)\}", re.MULTILINE)


def _of_clients() -> list[str]:
    """``kind name label,label``, as ``kip848_client.prometheus`` shows them."""
    families: list[Any] = list(Collector(Metrics()).describe())
    return [f"{each.type} {each.name} {','.join(each._labelnames)}" for each in families]


def _in(text: str) -> list[str]:
    """The same of a text in Prometheus' format."""
    labels: dict[str, set[str]] = {}
    for found in _SAMPLE.finditer(text):
        named = re.findall(r"(\w+)=", found["labels"])
        labels.setdefault(found["name"], set()).update(named)
    return [
        f"{found['kind']} {found['name']} {','.join(sorted(labels.get(found['name'], ())))}".strip()
        for found in _TYPE.finditer(text)
    ]


def _of_a_pipeline() -> list[str]:
    numbers = (
        "batches last_batch last_batch_ms records records_per_second rows bad lag partitions "
        "leaving member_epoch"
    )
    said: dict[str, Any] = dict.fromkeys(numbers.split(), 0)
    return _in(pipeline_text(PipelineStatus(state="running", ownership="shared", **said)))


def _of_a_broker() -> list[str]:
    return _in(broker_text(MockBroker({"t": 1}, listen=False).metrics()))


def _loggers() -> list[str]:
    """Of every ``getLogger`` in what is installed; an expression shows as it is written."""
    return sorted(
        {
            ast.unparse(node.args[0]).strip("'") if node.args else ""
            for module in product_modules()
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger")
        }
    )


def all_names() -> dict[str, Any]:
    """All of them, from today's code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    told = project["project"]
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    return {
        "metrics of clients": _of_clients(),
        "metrics of a pipeline": _of_a_pipeline(),
        "metrics of the bundled broker": _of_a_broker(),
        "loggers": _loggers(),
        "pytest fixtures and hooks": sorted(plugin.__all__),
        "console scripts": sorted(told["scripts"]),
        "pytest plugins": sorted(told["entry-points"]["pytest11"]),
        "extras": sorted(told["optional-dependencies"]),
        "packages of the wheel": sorted(Path(each).name for each in wheel["packages"]),
    }


def make(folder: Path) -> None:
    """Write all of them into one file."""
    (folder / _FILE).write_text(json.dumps(all_names(), indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> dict[str, Any]:
    """What ``make`` wrote."""
    found: dict[str, Any] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    return found
