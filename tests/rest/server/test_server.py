"""The server process: its sockets, authentication on them, and its shutdown."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.query import Page, RunQuery
from fairbank.core.errors import Conflict, InvalidInput, Unavailable
from fairbank.rest.client import Client, parse_address
from fairbank.rest.context import AppContext
from fairbank.rest.server.open_files import ENOUGH, connections_max, server_process
from fairbank.rest.server.server import serve
from fairbank.service.access.identity import Staff
from fairbank.service.services import services
from fairbank.store.factory import open_store
from fairbank.store.memory.store import MemoryStore
from fairbank.store.migration import migrate
from tests.rest.served import Served, served
from tests.rest.world import NOW, grant, report
from tests.support.account import Account
from tests.support.clock import ManualClock
from tests.support.conditions import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    """Provide a private directory with a path short enough for a socket."""
    made = Account.ourselves().own_folder("fb-rs-")
    yield made
    shutil.rmtree(made)


def with_credit(server: Served) -> None:
    """Give chem a cpu allocation."""
    assert server.unix.post("/project", json={"gname": "chem", "gid": 100}).status_code == 201
    assert (
        server.unix.post(
            "/alloc", json=grant(resource="cpu", start="2020-01-01", end="2090-01-01", amount=10**9)
        ).status_code
        == 201
    )


def hold(number: int) -> dict[str, Any]:
    return report(number, resource="cpu", amount=60, billing=None, start=NOW)


def test_unix_socket_identifies_the_user(folder: Path) -> None:
    with served(folder) as server:
        assert server.unix.get("/whoami").json()["data"]["uid"] == os.getuid()
        forged = {
            "X-Test-Uid": "12345",
            "X-Forwarded-For": "127.0.0.1",
            "X-Remote-User": "root",
            "X-Forwarded-User": "root",
        }
        assert server.unix.get("/whoami", headers=forged).json()["data"]["uid"] == os.getuid()


def test_tcp_requires_a_credential(folder: Path) -> None:
    with served(folder) as server:
        assert server.tcp.get("/health").status_code == 200
        assert server.tcp.get("/whoami").status_code == 401
        assert server.tcp.get("/whoami", headers={"X-Fairbank-As": "0"}).status_code == 401
        secret = server.unix.post("/token", json={"label": "x", "scopes": ["read"]}).json()["data"][
            "secret"
        ]
        assert (
            server.tcp.get("/whoami", headers={"Authorization": f"Bearer {secret}"}).json()["data"][
                "uid"
            ]
            == os.getuid()
        )


def send_and_read(server: Served, sent: bytes) -> bytes:
    """Send data over the Unix socket and nothing after it; return all that the server sends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(server.socket))
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("more", ["", "X-Odd: 1\r\n"], ids=["plain", "with a header"])
def test_half_closed_client_is_answered(folder: Path, more: str) -> None:
    with served(folder) as server:
        with_credit(server)
        bodies = [json.dumps(hold(number)) for number in (1, 2)]
        head = (
            f"POST /job HTTP/1.1\r\nHost: bank\r\n{more}Content-Type:"
            " application/json\r\nContent-Length: "
        )
        output = send_and_read(
            server, "".join(f"{head}{len(body)}\r\n\r\n{body}" for body in bodies).encode()
        )
        assert output.count(b"HTTP/1.1 201 Created") == 2
        assert len(server.unix.get("/job").json()["data"]) == 2


def test_request_without_host_is_refused(folder: Path) -> None:
    with served(folder) as server:
        output = send_and_read(server, b"GET /alloc HTTP/1.1\r\n\r\n")
        assert output.startswith(b"HTTP/1.1 400 ")
        assert b'"field":"Host"' in output
        assert send_and_read(server, b"GET /alloc HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 ")


def test_json_ends_with_a_line_end_for_curl(folder: Path) -> None:
    with served(folder) as server:
        for path in ("/health", "/whoami", "/alloc", "/nosuch", "/openapi.json"):
            text = server.unix.get(path).text
            assert (text[0], text[-2:]) == ("{", "}\n"), path
            assert server.unix.head(path).headers["content-length"] == str(len(text.encode()))
        assert not server.unix.get("/docs").text.endswith("}\n")
        assert send_and_read(server, b"no HTTP\r\n\r\n").endswith(b"}\n")


def test_client_of_the_commands_works(folder: Path) -> None:
    with served(folder) as server:
        client = Client(parse_address(f"unix:{server.socket}"))
        client.post("/project", {"gname": "chem", "gid": 100})
        assert [row["gname"] for row in client.get("/project")["data"]] == ["chem"]


def test_server_stops_in_order_on_sigterm(folder: Path) -> None:
    with served(folder, open_files=(8_192, 8_192)) as server:
        assert server.unix.get("/health").status_code == 200
        process = server_process(server.socket)
        assert process is not None
        process.demand_enough()
        assert server.stop() == 0
        assert server_process(server.socket) is None  # so the doctor has no such check
        assert not server.socket.exists()
        assert "Traceback" not in server.log.read_text()


def test_acknowledged_reports_survive_the_stop(folder: Path) -> None:
    """Clients send reports without pause while the server stops."""
    url = f"sqlite:///{folder}/fairbank.sqlite"
    migrate(url)
    acknowledged: set[int] = set()
    numbers, enough = count(1), Event()

    def send_reports() -> None:
        client = Client(parse_address(f"unix:{server.socket}"))
        with suppress(Unavailable):
            while client.post("/job", hold(number := next(numbers)))["data"]["entry"]:
                acknowledged.add(number)
                if len(acknowledged) > 50:
                    enough.set()

    with served(folder, store=url) as server:
        with_credit(server)
        with ThreadPoolExecutor(8) as clients:
            for _ in range(8):
                clients.submit(send_reports)
            assert enough.wait(30)
            assert server.stop() == 0
    store = open_store(url)
    with store.reading() as reader:
        known = {run.reported.run.job_id for run in reader.runs(RunQuery(), Page(1_000))}
    store.close()
    assert acknowledged <= known
    assert len(known) < 1_000


def test_second_server_keeps_the_socket_of_the_first(folder: Path) -> None:
    with served(folder) as server:
        context = _context()
        with pytest.raises(Conflict, match="a server is already listening"):
            serve(context, unix=server.socket)
        assert server.unix.get("/health").status_code == 200


def test_taken_port_is_refused_and_leaves_no_socket(folder: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(Conflict, match="cannot listen"),
    ):
        serve(_context(), unix=folder / "s", port=taken.getsockname()[1])
    assert not (folder / "s").exists()


def test_server_without_listener_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no socket or port to listen on"):
        serve(_context())


@pytest.mark.parametrize("port", [65_536, 99_999_999])
def test_invalid_port_is_refused(port: int) -> None:
    with pytest.raises(InvalidInput, match=f"{port} is not a port") as raised:
        serve(_context(), port=port)
    assert raised.value.field == "port"


def test_disconnect_within_a_body_harms_no_other(folder: Path) -> None:
    with served(folder) as server:
        with socket.socket(socket.AF_UNIX) as rude:
            rude.connect(str(server.socket))
            rude.sendall(
                b"POST /job HTTP/1.1\r\nhost: x\r\ncontent-type:"
                b" application/json\r\ncontent-length: 100\r\n\r\n{"
            )
        wait_until(
            lambda: server.unix.get("/metrics").text.count('route="/job"') > 0,
            "the broken request to be noticed",
        )
        assert "Traceback" not in server.log.read_text()


def test_idle_tcp_connections_leave_files_for_local_users(folder: Path) -> None:
    """There are more connections, each from another host, than the server may open files."""
    with served(folder, open_files=(200, 400)) as server, ExitStack() as others:
        port = server.tcp.base_url.port
        for host in range(450):
            source = (f"127.0.{1 + host // 200}.{1 + host % 200}", 0)
            others.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=10, source_address=source)
            )
        assert server.unix.get("/health").status_code == 200
        process = server_process(server.socket)
        assert process is not None
        with pytest.raises(Conflict, match="400 open files allow only 136 connections"):
            process.demand_enough()
        log = server.log.read_text()
        assert "400 open files allow only 136 connections" in log
        assert f"LimitNOFILE={2 * ENOUGH} in the server's unit" in log
        wait_until(
            lambda: "rejecting connections over TCP: 136 of 136 are open" in server.log.read_text(),
            "the log to tell",
        )


@pytest.mark.parametrize(
    ("files", "connections"), [(100, 1), (1_024, 448), (ENOUGH, 2_048), (2**20, 2_048), (-1, 2_048)]
)
def test_open_files_limit_the_connections(files: int, connections: int) -> None:
    assert connections_max(files) == connections


def _context() -> Any:
    return AppContext.create(
        services(
            MemoryStore(),
            clock=ManualClock(NOW),
            staff=Staff(),
            clusters={},
            policy=Policy(),
            key=b"k" * 32,
        )
    )
