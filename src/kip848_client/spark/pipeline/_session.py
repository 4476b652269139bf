"""A Spark session for one pipeline."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark._environment import check_environment
from kip848_client.spark.pipeline._config import RunSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["new_session"]

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
    """Start Spark. Raises ``ConfigError`` where it cannot be, and says why."""
    check_environment()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    is_local = run.master.startswith("local")
    if is_local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    logging = Path(tempfile.mkdtemp(prefix="kip848-")) / "log4j2.properties"
    logging.write_text(_LOGGING.format(level=run.log_level), encoding="utf-8")
    settings = {**_ALWAYS, **run.spark}
    java = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = (
        f"-Dlog4j2.configurationFile={logging} {java}".strip()
    )
    if run.packages:
        settings["spark.jars.packages"] = ",".join(run.packages)
    builder: Any = SparkSession.builder.master(run.master).appName(run.name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        session: SparkSession = builder.getOrCreate()
    except (PySparkException, RuntimeError) as err:
        raise ConfigError(f"Spark does not start with master {run.master!r}: {err}") from err
    except Exception as err:
        told = str(err).strip().splitlines()
        cause = next((line for line in told if "Exception" in line), told[0] if told else "")
        raise ConfigError(
            f"Spark does not start with master {run.master!r} (run.master, run.spark): {cause}"
        ) from err
    finally:
        logging.unlink(missing_ok=True)
        logging.parent.rmdir()
    return session
