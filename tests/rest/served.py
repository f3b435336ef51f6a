"""Server process for tests, on a Unix socket and on TCP. Run as a program, it is the server."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
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

    process: subprocess.Popen[bytes]
    socket: Path
    log: Path
    unix: httpx.Client
    tcp: httpx.Client

    def stop(self) -> int:
        """Stop the server in order and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


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
    path = folder / f"{name}.sock"
    options = {
        "store": store,
        "socket": str(path),
        "port": port,
        "name": name,
        "munge": dict(munge) if munge else None,
    }
    options["open_files"] = open_files
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.rest.served", json.dumps(options)],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=output,
        )
    assert process.stdout is not None
    try:
        with process.stdout:
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"the server did not start:\n{log.read_text()[-3000:]}")
        with (
            httpx.Client(
                transport=httpx.HTTPTransport(uds=str(path)), base_url="http://localhost"
            ) as unix,
            httpx.Client(base_url=f"http://127.0.0.1:{port}") as tcp,
        ):
            yield Served(process, path, log, unix, tcp)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


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
        ready=lambda: print("ready", flush=True),
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
