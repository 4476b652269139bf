"""The user's transform: a function from DataFrame to DataFrame, or a query."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.errors import PySparkException

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline._config import TransformSettings
from kip848_client.spark.pipeline._errors import PipelineFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["VIEW", "Transform", "transform_of"]

VIEW: Final = "records"
"""The view that a query reads."""

Transform = Callable[["DataFrame"], "DataFrame"]


def transform_of(settings: TransformSettings, given: Transform | None = None) -> Transform:
    """The transform of the settings, or the one given. Raises ``ConfigError`` for a function that
    cannot be imported. The transform raises ``PipelineFailed`` for errors of the user's code."""
    if given is not None:
        if settings.function is not None or settings.sql is not None:
            raise ConfigError("a transform is passed, and the settings have one, too; use only one")
        return _checked(given, "the transform")
    if settings.function is not None:
        name = settings.function
        return _checked(_imported(name), f"transform.function {name}")
    if settings.sql is not None:
        return _query(settings.sql)
    return lambda frame: frame


def _imported(name: str) -> Transform:
    module, _, path = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:  # as "python -m" does: a module beside pipeline.toml
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as err:
        raise ConfigError(
            f"transform.function = {name!r} cannot be imported: {type(err).__name__}: {err}"
        ) from err
    if not callable(found):
        raise ConfigError(
            f"transform.function = {name!r} is a {type(found).__name__}, not a function"
        )
    return cast("Transform", found)


def _checked(function: Transform, name: str) -> Transform:
    def transformed(frame: DataFrame) -> DataFrame:
        from pyspark.sql import DataFrame as AnyFrame

        try:
            found: Any = function(frame)
        except Exception as err:
            raise PipelineFailed(f"{name} raised {type(err).__name__}: {err}") from err
        if not isinstance(found, AnyFrame):
            raise PipelineFailed(f"{name} returned a {type(found).__name__}, not a DataFrame")
        return found

    return transformed


def _query(sql: str) -> Transform:
    def transformed(frame: DataFrame) -> DataFrame:
        session = frame.sparkSession
        frame.createOrReplaceTempView(VIEW)
        try:
            return session.sql(sql)
        except PySparkException as err:
            message = str(err).strip().splitlines()[0]
            raise PipelineFailed(f"transform.sql: {message}") from err

    return transformed
