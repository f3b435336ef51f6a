"""Real Fairbank servers for the tests: created as by `fairbank init`, run by `fairbank serve`,
stopped, killed and restarted.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from fairbank.setup.init import init
from tests.support.account import Account
from tests.support.daemon import Daemon

FAIRBANK = str(Path(sys.executable).with_name("fairbank"))
AHEAD = "clock_tolerance_seconds = 86_400  # runs of the tests last hours, and end at once"
PASSED_ON = ("PATH", "PYTHONPATH")


class FairbankServer(Daemon):
    """Bank in its own directory, on a Unix socket only. `store` is a URL (None: SQLite in the
    directory). Other arguments are sections of the settings with additional lines:
    policy="late_charges = false".
    """

    name = "the bank"
    orphans_seconds = 5.0  # the write queue process ends by itself, and logs it

    def __init__(self, store: str | None = None, **sections: str) -> None:
        super().__init__(Account.ourselves(), "fb-srv-")
        self.config = self.folder / "fairbank.toml"
        self.socket = self.folder / "fairbank.sock"
        self.store = store or f"sqlite:///{self.folder}/fairbank.sqlite"
        # As `fairbank init` does, without the start of another Python.
        init(str(self.folder), self.store, "fairbank")
        for section, lines in {
            **sections,
            "policy": f"{AHEAD}\n{sections.get('policy', '')}",
        }.items():
            settings = self.config.read_text()
            assert f"[{section}]\n" in settings
            self.config.write_text(settings.replace(f"[{section}]\n", f"[{section}]\n{lines}\n"))

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands: they find this bank and no personal settings."""
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "FAIRBANK_CONFIG": str(self.config),
            "FAIRBANK_SERVER": f"unix:{self.socket}",
        }

    def command(self, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run `fairbank WORDS` until it ends."""
        return subprocess.run(
            [FAIRBANK, *words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `fairbank WORDS` without waiting; its output goes to the log."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [FAIRBANK, *words], env=self.environment, cwd=self.folder, stdout=log, stderr=log
            )

    def _command(self) -> list[str]:
        return [FAIRBANK, "serve", "--config", str(self.config)]

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0


@contextmanager
def create_bank(store: str | None = None, **sections: str) -> Iterator[FairbankServer]:
    """Create a bank for the time of the block; it need not run for its commands."""
    server = FairbankServer(store, **sections)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def run_bank(store: str | None = None, **sections: str) -> Iterator[FairbankServer]:
    """Run a bank for the time of the block."""
    with create_bank(store, **sections) as server:
        server.start()
        yield server


@contextmanager
def run_two_banks(store: str) -> Iterator[tuple[FairbankServer, FairbankServer]]:
    """Run two banks on one database, started side by side."""
    with create_bank(store) as one, create_bank(store) as two, ThreadPoolExecutor(2) as pool:
        for started in [pool.submit(server.start) for server in (one, two)]:
            started.result()
        yield one, two
