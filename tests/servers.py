"""Servers that tests start: Postgres in a temporary directory, and Spark."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from typing import Any


class Absent(Exception):
    """A server needs a program that is not here."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """The address of a server that runs in a temporary directory; it refuses to run as root."""
    folders = sorted(glob("/usr/lib/postgresql/*/bin"))
    path = os.pathsep.join([os.environ.get("PATH", ""), *folders])
    initdb, control = shutil.which("initdb", path=path), shutil.which("pg_ctl", path=path)
    if initdb is None or control is None:
        raise Absent("needs the programs of a Postgres server (initdb, pg_ctl)")
    user = "postgres" if os.geteuid() == 0 else None
    if user is not None and user not in {entry.pw_name for entry in pwd.getpwall()}:
        raise Absent("does not run as root, and there is no user postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="hdmm-postgres-") as directory:
        if user is not None:
            shutil.chown(directory, user)

        def run(*command: str) -> None:
            subprocess.run(
                command, user=user, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

        data = f"{directory}/data"
        run(initdb, "-D", data, "-U", "hdmm", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off"
        run(control, "-D", data, "-w", "-l", f"{directory}/log", "-o", options, "start")
        try:
            yield f"postgresql://hdmm@127.0.0.1:{port}/postgres"
        finally:
            run(control, "-D", data, "-w", "-m", "immediate", "stop")


@contextmanager
def spark_session() -> Iterator[Any]:
    """A session of Spark in this process and one of Java."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise Absent("needs pyspark, the extra hdmm[spark]") from None
    if shutil.which("java") is None:
        raise Absent("needs Java")
    with tempfile.TemporaryDirectory(prefix="hdmm-spark-") as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.warehouse.dir", directory)
        # Counting this few records ends before the best compiler and collector of Java have paid off.
        builder = builder.config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
        )
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
