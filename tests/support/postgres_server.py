"""A PostgreSQL server for a test session: made in a temporary directory, by a user without rights, where initdb is."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

ACCOUNTS = ("postgres", "nobody")  # initdb refuses to work for root


def server_binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, None where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("pg_ctl")
    folders += [Path(os.path.realpath(on_path)).parent] if on_path else []
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server that listens on a socket only; gives its URL."""
    binaries = server_binaries()
    assert binaries is not None
    as_user = () if os.getuid() else ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    folder = Path(tempfile.mkdtemp(prefix="plumbline-pg-", dir="/tmp"))  # a socket's path is short
    try:
        if not os.getuid():
            os.chown(folder, 65534, 65534)
        data = str(folder / "data")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c shared_buffers=16MB"

        def run(tool: str, *arguments: str) -> None:
            command = [*as_user, str(binaries / tool), *arguments]
            log = (folder / "tool.log").open("ab")
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=60, cwd="/")

        run("initdb", "-D", data, "-U", "ann", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "server.log"), "-o", options, "start")
        try:
            yield f"postgresql+psycopg://ann:s3cret@/postgres?host={folder}"
        finally:
            run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
