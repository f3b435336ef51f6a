"""Server processes that authenticate by MUNGE, and clients that sign requests. `python -m
tests.rest.auth.munge_server` runs the server: see `serve`.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from uvicorn.server import Server

from fairbank.core.errors import FairbankError, Unauthenticated
from fairbank.core.time import Instant
from fairbank.rest.auth import credentials
from fairbank.rest.auth.credentials import BoundRequest, MungeVerifier, authorization, read_munge
from fairbank.rest.auth.munge import Munge
from fairbank.rest.server.http_protocol import server_config
from fairbank.rest.server.open_files import CONNECTIONS_MAX
from fairbank.rest.server.unix_socket import bind_unix
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.munge import Munged
from tests.support.supervisor import ProcessSpec, SupervisedProcess

BANK = "bank.example.org"
ASKED = BoundRequest.of("POST", "/job?page=2", b'{"amount": 60}', BANK)
NONCE = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


class SystemClock:
    def now(self) -> Instant:
        return Instant(int(time.time()))


class SqliteNonces:
    """Nonce table in a file that two servers share."""

    def __init__(self, path: str) -> None:
        self._path = path
        with closing(sqlite3.connect(path, timeout=30)) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS spent (uid INTEGER, nonce TEXT, expires_at INTEGER,"
                " PRIMARY KEY (uid, nonce))"
            )

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as db:
            return (
                db.execute(
                    "INSERT OR IGNORE INTO spent VALUES (?, ?, ?)", (uid, nonce, expires_at)
                ).rowcount
                == 1
            )


def munge_of(munged: Munged, *, only_uid: int | None = None) -> Munge:
    return Munge(socket=str(munged.socket), library=str(munged.libmunge), only_uid=only_uid)


def serve(socket_path: str, munge_socket: str, library: str, nonce_file: str) -> None:
    """Run a server that answers each signed request with the uid of the signer."""
    bank = MungeVerifier(
        Munge(socket=munge_socket, library=library), SqliteNonces(nonce_file), SystemClock()
    )

    def admit(scope: Any, body: bytes) -> tuple[int, str]:
        try:
            header = authorization(scope["headers"])
            if header is None:
                raise Unauthenticated("the request is not signed")
            target = credentials.target_of(scope["raw_path"], scope["query_string"])
            return 200, str(
                bank.verify(
                    read_munge(header), BoundRequest.of(scope["method"], target, body, BANK)
                ).uid
            )
        except FairbankError as error:
            return error.status, error.message

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if scope["type"] == "lifespan":
                await send({"type": event["type"] + ".complete"})
                if event["type"].endswith("shutdown"):
                    return
            elif not event.get("more_body"):
                break
        status, text = await asyncio.to_thread(admit, scope, body)
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-length", str(len(text)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": text.encode()})

    Server(server_config(app, connections_max=CONNECTIONS_MAX)).run(
        sockets=[bind_unix(Path(socket_path))]
    )


class MungeServer:
    """Server process of the bank that accepts MUNGE credentials."""

    def __init__(self, folder: Path, munged: Munged, nonce_file: Path, checkout: Path) -> None:
        self._path = str(folder / "http")
        us = Account.ourselves()
        command = [
            sys.executable,
            "-m",
            __name__,
            self._path,
            str(munged.socket),
            str(munged.libmunge),
            str(nonce_file),
        ]
        environment = {
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([str(checkout), *filter(None, sys.path)]),
        }
        self._log = folder / "log"
        self._process = SupervisedProcess(
            ProcessSpec(
                command, environment, str(folder), str(self._log), us.uid, us.gid, us.groups, 15
            )
        )
        wait_until(lambda: self._listens() or not self._process.running, "the server to listen")
        assert self._process.running, self._log.read_text()

    def ask(
        self,
        authorization: str,
        *,
        method: str = "POST",
        target: str = "/job?page=2",
        body: bytes = b'{"amount": 60}',
    ) -> tuple[int, str]:
        with closing(http.client.HTTPConnection("localhost")) as connection:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(self._path)
            connection.request(method, target, body, {"Authorization": authorization})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def close(self) -> None:
        self._process.stop()

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self._path) == 0


if __name__ == "__main__":
    serve(*sys.argv[1:])
