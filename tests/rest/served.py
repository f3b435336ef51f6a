"""Server process for tests, on a Unix socket and on TCP. Run as a program, it is the server."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fairbank.bank.policy import Policy
from fairbank.core.time import Instant
from fairbank.rest.auth.munge import LIBRARY, Munge
from fairbank.rest.context import AppContext
from fairbank.rest.server.log import log_to
from fairbank.rest.server.server import serve
from fairbank.service.access.identity import Staff
from fairbank.service.services import services
from fairbank.store.factory import open_store
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.supervisor import ProcessSpec, SupervisedProcess

CHECKOUT = Path(__file__).resolve().parents[2]
KEY = b"k" * 32


class WallClock:
    def now(self) -> Instant:
        return Instant(int(time.time()))


@dataclass
class Served:
    """Running server. `unix` sends requests as the user of the tests, who is a superuser and the
    agent of alpha.
    """

    process: SupervisedProcess
    socket: Path
    log: Path
    unix: httpx.Client
    tcp: httpx.Client

    def stop(self) -> int:
        """Stop the server in order and return its exit code."""
        return self.process.stop()


@contextmanager
def served(
    folder: Path,
    *,
    store: str = "memory:",
    name: str = "fairbank",
    munge: Mapping[str, str] | None = None,
    open_files: tuple[int, int] | None = None,
) -> Iterator[Served]:
    """Start a server with its socket in `folder`, and stop it after the block.

    Args:
        open_files: soft and hard limit of open files of the server.
    """
    port = _free_port()
    path, ready = folder / f"{name}.sock", folder / f"{name}.ready"
    ready.unlink(missing_ok=True)
    options = {
        "store": store,
        "socket": str(path),
        "ready": str(ready),
        "port": port,
        "name": name,
        "munge": dict(munge) if munge else None,
    }
    options["open_files"] = open_files
    log = folder / f"{name}.log"
    us = Account.ourselves()
    process = SupervisedProcess(
        ProcessSpec(
            command=[sys.executable, "-m", "tests.rest.served", json.dumps(options)],
            environment={**os.environ, "PYTHONPATH": str(CHECKOUT)},
            folder=str(folder),
            log=str(log),
            uid=us.uid,
            gid=us.gid,
            groups=us.groups,
            stop_signal=signal.SIGTERM,
        )
    )
    try:
        wait_until(lambda: ready.exists() or not process.running, "the server to be ready")
        if not process.running:
            raise RuntimeError(f"the server did not start:\n{log.read_text()[-3000:]}")
        with (
            httpx.Client(
                transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost"
            ) as unix,
            httpx.Client(base_url=f"http://127.0.0.1:{port}") as tcp,
        ):
            yield Served(process, path, log, unix, tcp)
    finally:
        process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def main(options: dict[str, Any]) -> None:
    log_to(sys.stderr)
    if options["open_files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, tuple(options["open_files"]))
    munge = None
    if options["munge"]:
        munge = Munge(
            socket=options["munge"]["socket"], library=options["munge"].get("library", LIBRARY)
        )
    bank = services(
        open_store(options["store"]),
        clock=WallClock(),
        staff=Staff(frozenset({os.getuid()}), frozenset(), {os.getuid(): frozenset({"alpha"})}),
        clusters={},
        policy=Policy(),
        key=KEY,
    )
    context = AppContext.create(bank, munge=munge, name=options["name"])
    serve(
        context,
        unix=Path(options["socket"]),
        port=options["port"],
        ready=Path(options["ready"]).touch,
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
