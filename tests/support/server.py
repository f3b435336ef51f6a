"""A real Fairbank for the tests: made as by `fairbank init`, run by `fairbank serve`, stopped, killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from fairbank.compose import Works
from tests.support.account import Account
from tests.support.keeper import Kept, Order
from tests.support.waiting import wait_until

FAIRBANK = str(Path(sys.executable).with_name("fairbank"))
PASSED_ON = ("PATH", "PYTHONPATH")


class FairbankServer:
    """A bank in a folder of its own, on a Unix socket only. `store` is a URL (None: SQLite in the folder).

    What else is named is a section of the settings with more lines for it: policy="late_charges = false".
    """

    def __init__(self, store: str | None = None, **sections: str) -> None:
        self._account = Account.ourselves()
        self.folder = self._account.own_folder("fb-srv-")
        self.config = self.folder / "fairbank.toml"
        self.socket = self.folder / "fairbank.sock"
        self.log = self.folder / "log"
        self.store = store or f"sqlite:///{self.folder}/books.sqlite"
        self._process: Kept | None = None
        Works().init(str(self.folder), self.store)  # as `fairbank init` does, without the start of another Python
        for section, lines in sections.items():
            settings = self.config.read_text()
            assert f"[{section}]\n" in settings
            self.config.write_text(settings.replace(f"[{section}]\n", f"[{section}]\n{lines}\n"))

    @property
    def environment(self) -> dict[str, str]:
        """For commands: they find this bank, and nothing of a person's own."""
        return {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "FAIRBANK_CONFIG": str(self.config),
            "FAIRBANK_SERVER": f"unix:{self.socket}",
        }

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int:
        """For tests that stop and continue the process."""
        assert self._process is not None
        return self._process.pid

    def command(self, *words: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """`fairbank WORDS`, to its end."""
        return subprocess.run(
            [FAIRBANK, *words], env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False, timeout=timeout
        )

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        """`fairbank WORDS`, not waited for; what it prints goes to the log."""
        with self.log.open("ab") as log:
            return subprocess.Popen([FAIRBANK, *words], env=self.environment, cwd=self.folder, stdout=log, stderr=log)

    def start(self) -> None:
        """Start, unless it runs, and return when it listens."""
        if self.running:
            return
        self._process = Kept(
            Order(
                command=[FAIRBANK, "serve", "--config", str(self.config)],
                environment=self.environment,
                folder=str(self.folder),
                log=str(self.log),
                uid=self._account.uid,
                gid=self._account.gid,
                groups=self._account.groups,
                stop_signal=signal.SIGTERM,
            )
        )
        wait_until(lambda: self._listens() or not self.running, "the bank to listen", seconds=60)
        if not self.running:
            self._process.stop()
            raise RuntimeError(f"the bank ended at once:\n{self.tail()}")

    def stop(self) -> None:
        """An orderly end."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """The end of the server and of its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tail(self, characters: int = 3_000) -> str:
        """The end of what the server said."""
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0


@contextmanager
def made(store: str | None = None, **sections: str) -> Iterator[FairbankServer]:
    """A bank, as long as the block lasts; it need not run for its commands."""
    server = FairbankServer(store, **sections)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def banking(store: str | None = None, **sections: str) -> Iterator[FairbankServer]:
    """A running bank, as long as the block lasts."""
    with made(store, **sections) as server:
        server.start()
        yield server


@contextmanager
def banking_twice(store: str) -> Iterator[tuple[FairbankServer, FairbankServer]]:
    """Two running banks over one database, started side by side."""
    with made(store) as one, made(store) as two, ThreadPoolExecutor(2) as pool:
        for started in [pool.submit(each.start) for each in (one, two)]:
            started.result()
        yield one, two
