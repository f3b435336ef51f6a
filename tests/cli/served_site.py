"""Site of the tests, served by a separate process."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from fairbank.core.errors import FairbankError
from fairbank.rest.client import Client, parse_address
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.supervisor import ProcessSpec, SupervisedProcess

CHECKOUT = Path(__file__).resolve().parents[2]


class Bank(NamedTuple):
    """Address of the served site; `http` takes the token in `token_file`."""

    unix: str
    http: str
    token_file: str


@contextmanager
def serve_site(**environment: str) -> Iterator[Bank]:
    """Serve a new site until the block ends."""
    folder = Account.ourselves().own_folder("fb-cli-")
    path, port, token = folder / "bank.sock", free_port(), folder / "token"
    process = SupervisedProcess(
        ProcessSpec(
            command=[sys.executable, "-m", "tests.cli.site", str(path), str(port), str(token)],
            environment={
                **os.environ,
                "PYTHONPATH": f"{CHECKOUT}{os.pathsep}{CHECKOUT / 'src'}",
                "TZ": "UTC",
                **environment,
            },
            folder=str(folder),  # removed if the tests are killed
            log=str(folder / "log"),
            uid=os.geteuid(),
            gid=os.getegid(),
            groups=None,
            stop_signal=signal.SIGTERM,
        )
    )
    try:
        wait_until(
            lambda: is_answering(f"unix:{path}") or not process.running, "the site to answer"
        )
        assert process.running, (folder / "log").read_text()
        yield Bank(f"unix:{path}", f"http://127.0.0.1:{port}", str(token))
    finally:
        process.stop()
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def is_answering(address: str) -> bool:
    try:
        return bool(Client(parse_address(address)).get("/health")["status"] == "ok")
    except FairbankError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
