"""The settings of a pipeline: what is wrong is named, with its line."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline import PipelineConfig
from kip848_client.spark.pipeline._until import until_options
from kip848_client.spark.pipeline.config import config_from, load_config

_WHOLE = """\
# a comment
[source]
bootstrap_servers = "localhost:9092"
topics = ["orders"]
group = "billing"

[source.options]
kafka.security.protocol = "SSL"   # a key with dots
"includeHeaders" = true
tasks = 3

[sink]
path = "/data/orders"

[run]
checkpoint = "/data/checkpoints/orders"
"""


def _load(tmp_path: Path, text: str) -> Any:
    (tmp_path / "pipeline.toml").write_text(text)
    return load_config(tmp_path / "pipeline.toml")


def test_a_file_is_read(tmp_path: Path) -> None:
    config = _load(tmp_path, _WHOLE)
    assert config.source.topics == ("orders",)
    assert config.source.is_shared
    assert config.source.options == {
        "kafka.security.protocol": "SSL",
        "includeHeaders": "true",
        "tasks": "3",
    }
    assert config.sink.format == "parquet"
    assert config.run.master == "local[*]"
    assert config.decode.format == "none"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("topics =", "topcs =", r"pipeline.toml:4: .*source.topcs; did you mean topics\?"),
        ("[sink]", "[sinc]", r"pipeline.toml:12: unknown setting sinc; did you mean sink"),
        ("[sink]\n", "[sink]\nwhatever = 1\n", r":13: .*sink.whatever; known are format, path"),
        ('group = "billing"', "group = 7", r":5: source.group: .*string \(got 7\)"),
        ('group = "billing"', 'ownership = "both"', r":5: source.ownership: .*'shared'"),
        ('group = "billing"', 'ownership = "shared"', r":2: source: .*needs a group"),
        ('checkpoint = "/data/checkpoints/orders"', "", r":15: setting run.checkpoint is mis"),
        ('topics = ["orders"]\n', "", r":2: source: set exactly one of topics and topic_pattern"),
        ("path =", 'trigger = "often"\npath =', r":13: unknown setting sink.trigger"),
        ("[run]", '[run]\ntrigger = "often"', r":16: run.trigger: .*pattern"),
        ("/data/checkpoints/orders", "/data/orders/", "must differ"),
        ("[sink]\n", "[sink\n", r"pipeline.toml is not valid TOML: .*line 12"),
        ("[sink]\n", '[decode]\nformat = "json"\n[sink]\n', r":12: decode: .*'json' needs columns"),
        (
            "[sink]\n",
            '[sink]\nformat = "delta"\npartition_by_time = "day"\n',
            ":12: sink: partition_by_time needs format = 'parquet'",
        ),
        (
            "[sink]\n",
            '[sink]\npartition_by_time = "day"\noptions.maxRecordsPerFile = 9\n',
            ":12: sink: options.maxRecordsPerFile cannot be set with partition_by_time",
        ),
        ("[sink]\n", '[sink]\npartition_by_time = "week"\n', r":13: .*'hour' or 'day'"),
        ("[sink]\n", '[transform]\nfunction = "x"\n[sink]\n', r":13: transform.function"),
        (
            "[sink]\n",
            '[sink]\nformat = "delta"\ntable = "t"\n',
            ":12: sink: set exactly one of path and table",
        ),
        (
            "tasks = 3",
            'kafka.sasl.password = "${NOT_THERE}"',
            ":7: .*variable NOT_THERE is not set",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in _WHOLE
    with pytest.raises(ConfigError, match=told):
        _load(tmp_path, _WHOLE.replace(old, new))


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing.toml: .*No such file"):
        load_config(tmp_path / "missing.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"bytes.toml: .*utf-8"):
        load_config(tmp_path / "bytes.toml")


def test_a_mapping_has_no_lines() -> None:
    with pytest.raises(ConfigError, match=r"^setting source is missing \(2 more wrong\)$"):
        config_from({})


def test_secrets_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "xyz")
    text = _WHOLE.replace("tasks = 3", 'kafka.sasl.password = "${A_SECRET}"')
    assert _load(tmp_path, text).source.options["kafka.sasl.password"] == "xyz"


def test_an_output_by_time_needs_the_offsets_of_batches() -> None:
    settings: dict[str, Any] = {
        "source": {"bootstrap_servers": "b:1", "topics": ["a"], "engine": "jvm"},
        "sink": {"path": "/out", "partition_by_time": "day"},
        "run": {"checkpoint": "/checkpoint"},
    }
    with pytest.raises(ConfigError, match=r"partition_by_time needs source.engine = 'python'"):
        config_from(settings)


@pytest.mark.parametrize(
    ("decode", "source", "reason"),
    [
        ({"format": "text"}, {}, "registry needs format = 'avro', 'json' or 'protobuf'"),
        ({"skip_bytes": 5}, {}, "skip_bytes cannot be set with registry"),
        ({"schema_file": "x"}, {}, "schema_file cannot be set"),
        ({"columns": "a int"}, {}, "columns cannot be set with format = 'avro'"),
        ({"registry": None, "schema_file": "x", "subject": "s"}, {}, "need registry"),
        ({"registry": "localhost:8081"}, {}, r"decode.registry: .*pattern"),
        ({"version": 0.5}, {}, "decode.version"),
        ({}, {"topics": ["a", "b"]}, "decode.registry needs decode.subject"),
        ({}, {"topics": [], "topic_pattern": "a.*"}, "decode.registry needs decode.subject"),
    ],
)
def test_settings_of_a_registry_are_checked(
    decode: dict[str, Any], source: dict[str, Any], reason: str
) -> None:
    settings: dict[str, Any] = {
        "source": {"bootstrap_servers": "b:1", "topics": ["a"]},
        "decode": {"format": "avro", "registry": "http://localhost:8081"},
        "sink": {"path": "/out"},
        "run": {"checkpoint": "/checkpoint"},
    }
    assert config_from(settings).decode.version == "latest"
    settings["decode"] |= decode
    settings["source"] |= source
    with pytest.raises(ConfigError, match=reason):
        config_from(settings)


def test_a_login_of_a_registry_is_not_shown() -> None:
    options = {"basic.auth.user.info": "me:very-secret"}
    settings: dict[str, Any] = {
        "source": {"bootstrap_servers": "b:1", "topics": ["a"]},
        "decode": {"format": "json", "registry": "http://r", "registry_options": options},
        "sink": {"path": "/out"},
        "run": {"checkpoint": "/checkpoint"},
    }
    config = config_from(settings)
    assert "very-secret" not in f"{config!r}{config.model_dump()}"
    settings["decode"]["registry"] = "http://me:very-secret@r"
    with pytest.raises(
        ConfigError, match="registry has a login: set it in registry_options"
    ) as err:
        config_from(settings)
    assert "very-secret" not in str(err.value)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        ({"until": "tomorrow"}, "until must be 'now', a time with its offset from UTC"),
        ({"until": "2026-11-26T18:00:00"}, "until lacks the offset from UTC"),
        ({"until": date(2026, 11, 26)}, "until lacks the offset from UTC"),
        ({"until": '{"a": {"0": -2}}'}, "until endingOffsets: expected an offset"),
        ({"until": "{"}, "until endingOffsets"),
        ({"until": "now", "trigger": "10 seconds"}, "trigger = '10 seconds' goes on for ever"),
        ({"until": "2026-11-26T18:00:00Z", "engine": "jvm"}, "with source.engine = 'jvm' must be"),
    ],
)
def test_an_end_that_is_none_is_refused(run: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        _bounded(**run)


def _bounded(*, engine: str = "python", **run: Any) -> PipelineConfig:
    return config_from(
        {
            "source": {"bootstrap_servers": "b:1", "topics": ["a"], "engine": engine},
            "sink": {"path": "/out"},
            "run": {"checkpoint": "/checkpoint", **run},
        }
    )


@pytest.mark.parametrize(
    ("until", "options"),
    [
        ("now", {}),
        ("1970-01-01T01:00:01.5+01:00", {"endingTimestamp": "1500"}),
        (datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC), {"endingTimestamp": "2000"}),
        ({"a": {"0": 5}}, {"endingOffsets": '{"a": {"0": 5}}'}),
    ],
)
def test_an_end_makes_a_run_bounded(until: Any, options: dict[str, str]) -> None:
    run = _bounded(until=until).run
    assert run.is_bounded
    assert until_options(run.until or "") == options
    assert _bounded(until=until, trigger="available-now").run.is_bounded
    assert not _bounded().run.is_bounded
    assert _bounded(until="now", engine="jvm").run.is_bounded
