"""Server that returns the peer it sees and the number of requests; and clients for it. `python -m
tests.rest.server.echo_server` runs the server: see `serve`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import Server

from fairbank.rest.auth.peers import peer_of
from fairbank.rest.server.http_protocol import HttpProtocol, server_config
from fairbank.rest.server.log import log_to
from fairbank.rest.server.unix_socket import bind_unix
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.supervisor import ProcessSpec, SupervisedProcess

HEAD_SECONDS = 1.0  # of this server for a complete head, and for each part of a body
PER_USER_MAX = 8  # maximum number of connections of one user
CONNECTIONS_MAX = 16  # of all users, over the Unix socket and over TCP separately
IGNORE_DISCONNECT = suppress(BrokenPipeError, ConnectionResetError)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def serve(path: str, loop: str) -> None:
    request_count = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal request_count
        if scope["type"] == "lifespan":
            for _ in ("startup", "shutdown"):
                event = await receive()
                await send({"type": event["type"] + ".complete"})
            return
        request_count += 1
        if scope["path"] == "/later":
            await asyncio.sleep(3 * HEAD_SECONDS)
        length, event = 0, {}
        while scope["path"] != "/early" and (event := await receive()).get("more_body"):
            length += len(event["body"])
        length += len(event.get("body", b""))
        peer = peer_of(scope)
        names = [name.decode() for name, _ in scope["headers"]]
        content = {
            "peer": peer,
            "extensions": list(scope["extensions"]),
            "headers": names,
            "request_count": request_count,
            "length": length,
        }
        body = json.dumps(content).encode()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": body})

    log_to(sys.stderr)
    over_tcp = socket.create_server(("127.0.0.1", 0))
    Path(path + ".port").write_text(str(over_tcp.getsockname()[1]))
    HttpProtocol.head_seconds = HttpProtocol.receive_seconds = HEAD_SECONDS
    HttpProtocol.per_peer_max = PER_USER_MAX
    config = server_config(app, connections_max=CONNECTIONS_MAX)
    config.loop = loop
    Server(config).run(sockets=[over_tcp, bind_unix(Path(path))])


class EchoServer:
    """Running server, and connections to it."""

    def __init__(self, folder: Path, loop: str, checkout: Path) -> None:
        self.path = str(folder / "http")
        us = Account.ourselves()
        environment = {
            "PATH": os.defpath,
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": os.pathsep.join([str(checkout), *filter(None, sys.path)]),
        }
        command = [sys.executable, "-m", __name__, self.path, loop]
        self.log = log = folder / "log"
        self._process = SupervisedProcess(
            ProcessSpec(command, environment, str(folder), str(log), us.uid, us.gid, us.groups, 15)
        )
        wait_until(lambda: self._listens() or not self._process.running, "the server to listen")
        assert self._process.running, log.read_text()

    def unix(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(self.path)
        return connection

    def tcp(self, come_from: str = "127.0.0.1") -> socket.socket:
        address = ("127.0.0.1", int(Path(self.path + ".port").read_text()))
        return socket.create_connection(address, timeout=10, source_address=(come_from, 0))

    def close(self) -> None:
        self._process.stop()

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0


def request(path: str = "/", *headers: str, body: bytes = b"", method: str = "GET") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    return (
        "\r\n".join([f"{method} {path} HTTP/1.1", "Host: bank", *length, *headers, "", ""]).encode()
        + body
    )


def read_response(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Return a response as JSON, and status 0 if the connection ended instead."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        try:
            byte = connection.recv(1)
        except ConnectionResetError:
            byte = b""
        if not byte:
            return 0, {}
        head += byte
    length = next(
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length")
    )
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return int(head.split()[1]), json.loads(body)


def is_closed(connection: socket.socket) -> bool:
    """Return True if the server closes the connection without further data. Unread data makes that
    a reset.
    """
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(connection: socket.socket, sent: bytes) -> dict[str, Any]:
    connection.sendall(sent)
    status, body = read_response(connection)
    assert status == 200
    return body


def as_user(account: Account, task: Callable[[], object]) -> Any:
    """Call the task in a process of this user and return its result, through JSON."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setresgid(account.gid, account.gid, account.gid)
            os.setresuid(account.uid, account.uid, account.uid)
            os.write(writing, json.dumps(task()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result = pipe.read()
    os.waitpid(child, 0)
    return json.loads(result)


if __name__ == "__main__":
    serve(*sys.argv[1:])
