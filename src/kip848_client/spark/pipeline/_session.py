"""A Spark session for one pipeline."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from kip848_client.errors import ConfigError
from kip848_client.spark._archive import ship
from kip848_client.spark._environment import check_environment
from kip848_client.spark.pipeline._config import RunSettings
from kip848_client.spark.pipeline.core._causes import cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["new_session", "ship_to_executors"]

_LOGGING: Final = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""
_ALWAYS: Final = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}


def new_session(run: RunSettings) -> SparkSession:
    """Start Spark. Raises ``ConfigError`` with the reason if it does not start."""
    check_environment()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    _set_python(run)
    logging = Path(tempfile.mkdtemp(prefix="kip848-")) / "log4j2.properties"
    logging.write_text(_LOGGING.format(level=run.log_level), encoding="utf-8")
    settings = {**_ALWAYS, **run.spark}
    java = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile={logging} {java}".strip()
    )
    for name, said in (("spark.jars.packages", run.packages), ("spark.archives", run.archives)):
        if said:
            settings[name] = ",".join(said)
    builder: Any = SparkSession.builder.master(run.master).appName(run.name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except (PySparkException, RuntimeError) as err:
        raise ConfigError(f"Spark does not start with master {run.master!r}: {err}") from err
    except Exception as err:
        lines = str(err).strip().splitlines()
        cause = next((line for line in lines if "Exception" in line), lines[0] if lines else "")
        raise ConfigError(
            f"Spark does not start with master {run.master!r} (run.master, run.spark): {cause}"
        ) from err
    finally:
        logging.unlink(missing_ok=True)
        logging.parent.rmdir()
    return session


def _set_python(run: RunSettings) -> None:
    """Set the Python of executors: Spark reads it from the environment only."""
    said = run.spark.get("spark.pyspark.python")
    if said is not None:
        os.environ["PYSPARK_PYTHON"] = said
    if run.master.startswith("local"):  # local-cluster is on this machine, too
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def ship_to_executors(spark: SparkSession, run: RunSettings) -> None:
    """Ship this package and the files of the settings to executors, if they are other processes.
    Raises ``ConfigError`` for a file that cannot be shipped."""
    from pyspark.errors import PySparkException

    if run.ship and not _is_one_process(spark.sparkContext.master or ""):
        ship(spark)
    for path in run.py_files:
        try:
            spark.addArtifacts(path, pyfile=True)
        except (PySparkException, Py4JJavaError, OSError) as err:
            raise ConfigError(
                f"run.py_files: {path} cannot be shipped to executors: {cause_of(str(err))}"
            ) from err


def _is_one_process(master: str) -> bool:
    return master == "local" or master.startswith("local[")
