"""A PostgreSQL server for a test session: made in a temporary directory, by a user without rights, where initdb is."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ACCOUNTS = ("postgres", "nobody")  # initdb refuses to work for root


def server_binaries() -> Path | None:
    """Return the folder of initdb and pg_ctl, None where there is none."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("pg_ctl")
    folders += [Path(os.path.realpath(on_path)).parent] if on_path else []
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A server that listens on a socket only, in a folder of its own."""

    folder: Path

    @property
    def url(self) -> str:
        """Return where to find it; it takes any password."""
        return f"postgresql+psycopg://ann:s3cret@/postgres?host={self.folder}"

    def make(self) -> None:
        """Make an empty database."""
        self._run("initdb", "-U", "ann", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C")

    def start(self) -> None:
        """Start it and wait until it answers."""
        folder = self.folder
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c shared_buffers=16MB"
        self._run("pg_ctl", "-w", "-l", str(folder / "server.log"), "-o", options, "start")

    def end(self) -> None:
        """End it at once, whatever its clients do: as a crash, which it mends when it starts again."""
        self._run("pg_ctl", "-m", "immediate", "stop")

    def _run(self, tool: str, *arguments: str) -> None:
        binaries = server_binaries()
        assert binaries is not None
        as_user = () if os.getuid() else ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        command = [*as_user, str(binaries / tool), "-D", str(self.folder / "data"), *arguments]
        with (self.folder / "tool.log").open("ab") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=60, cwd="/")


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Run a server, which a test may end and start."""
    folder = Path(tempfile.mkdtemp(prefix="plumbline-pg-", dir="/tmp"))  # a socket's path is short
    server = PostgresServer(folder)
    try:
        if not os.getuid():
            os.chown(folder, 65534, 65534)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """Run a server; gives its URL."""
    with running_server() as server:
        yield server.url
