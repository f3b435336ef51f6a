"""Refusals before the body is read, and slow requests that delay only their own kind."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, cast

import pytest

from fairbank.rest.auth.credentials import BoundRequest, sign
from fairbank.rest.auth.munge import CREDENTIAL_MAX, Munge
from fairbank.rest.request import BODY_MAX
from fairbank.rest.routes import job
from fairbank.rest.server.http_protocol import PER_PEER_MAX
from fairbank.rest.server.limits import client_of
from fairbank.rest.server.middleware import BODIES_MAX, REQUESTS_MAX, TIMEOUT_SECONDS
from fairbank.rest.thread_pools import THREADS
from fairbank.store.contract import Reader
from fairbank.store.memory.store import MemoryStore
from tests.rest.served import Served, served
from tests.rest.world import AGENT, NOW, SUPERUSER, create_world, report
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.munge import Munged, MungeTools, munging

BODY = json.dumps({"reports": [report(1)]}).encode()


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Account.ourselves().own_folder("fb-st-")
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def munged(munge_tools: MungeTools) -> Iterator[Munged]:
    """Provide one munged for all tests of this file."""
    with munging(munge_tools) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def server(folder: Path, munged: Munged) -> Iterator[Served]:
    with served(
        folder, munge={"socket": str(munged.socket), "library": str(munged.libmunge)}
    ) as running:
        yield running


def signed(
    munged: Munged, target: str = "/job/bulk", body: bytes = BODY, *, name: str = "fairbank"
) -> str:
    return sign(
        Munge(socket=str(munged.socket), library=str(munged.libmunge)),
        BoundRequest.of("POST", target, body, name),
    )


class PartialRequest:
    """Connection over TCP that sends the head of a request, and its body only as the test sends
    it.
    """

    def __init__(
        self,
        server: Served,
        authorization: str | None,
        *,
        body: str = f"content-length: {len(BODY)}",
    ) -> None:
        self.wire = socket.create_connection(
            ("127.0.0.1", cast("int", server.tcp.base_url.port)), timeout=20
        )
        head = ["POST /job/bulk HTTP/1.1", "host: bank", "content-type: application/json", body]
        head += [] if authorization is None else [f"authorization: {authorization}"]
        self.wire.sendall("\r\n".join([*head, "", ""]).encode())

    def answer(self) -> tuple[int, bytes]:
        """Return the status, and all data until the server closes the connection."""
        with self.wire:
            response = b"".join(iter(lambda: self.wire.recv(65_536), b""))
        return int(response.split()[1]), response


UNAUTHENTICATED: Mapping[str, str | None] = {
    "without credential": None,
    "with an unknown scheme": "Basic cm9vdDpyb290",
    "with an invalid token": "Bearer x",
    "with an unknown token": "Bearer fbk_" + "A" * 43,
    "with an invalid MUNGE credential": "Munge x",
    "with a credential of another realm": "Munge MUNGE:AAAA:",
}


@pytest.mark.parametrize("reason", UNAUTHENTICATED)
@pytest.mark.parametrize(
    "body",
    [f"content-length: {len(BODY)}", "content-length: 4000000", "transfer-encoding: chunked"],
)
def test_unauthenticated_request_is_refused_before_its_body_is_read(
    server: Served, reason: str, body: str
) -> None:
    status, response = PartialRequest(server, UNAUTHENTICATED[reason], body=body).answer()
    assert status == 401
    assert b"www-authenticate: munge, bearer" in response.lower()
    assert b"connection: close" in response.lower()


@pytest.mark.parametrize(
    ("more", "differs"),
    [({"target": "/job"}, "path or query"), ({"name": "another"}, "server name")],
)
def test_credential_for_another_request_is_refused_before_the_body(
    server: Served, munged: Munged, more: dict[str, str], differs: str
) -> None:
    credential = signed(munged, **more)  # type: ignore[arg-type]
    status, response = PartialRequest(server, credential).answer()
    assert (status, f"the {differs} differs".encode() in response) == (401, True)


def test_credential_for_another_body_is_refused_after_the_body(
    server: Served, munged: Munged
) -> None:
    partial = PartialRequest(
        server, signed(munged, body=b"{}"), body=f"content-length: {len(BODY)}\r\nconnection: close"
    )
    partial.wire.sendall(BODY)
    status, response = partial.answer()
    assert (status, b"the body hash differs" in response) == (401, True)


def test_credential_is_valid_for_a_slow_body(server: Served, munged: Munged) -> None:
    head = f"content-length: {len(BODY)}\r\nconnection: close"
    credential = signed(munged)
    slow = PartialRequest(server, credential, body=head)
    slow.wire.sendall(BODY[:10])
    slow.wire.sendall(BODY[10:])
    assert slow.answer()[0] == 200
    repeated = PartialRequest(server, credential, body=head)
    repeated.wire.sendall(BODY[:10])
    assert repeated.answer()[0] == 401, "refused by its head, before the rest of its body"


def test_forwarded_headers_change_nothing(server: Served) -> None:
    forged = {
        "X-Forwarded-For": "192.0.2.1",
        "Forwarded": "for=192.0.2.1",
        "X-Real-Ip": "192.0.2.1",
        "X-Remote-User": "root",
    }
    assert server.tcp.get("/whoami", headers=forged).status_code == 401
    scope = {
        "client": ("127.0.0.1", 5),
        "headers": [(name.lower().encode(), value.encode()) for name, value in forged.items()],
    }
    assert client_of(scope) == "127.0.0.1"


def test_page_about_proxies_has_the_limits(checkout: Path) -> None:
    page = " ".join((checkout / "docs/howto/run-behind-a-proxy.md").read_text().split())
    for figure in (
        f"{PER_PEER_MAX} connections",
        f"{REQUESTS_MAX // 2} requests at a time",
        f"{BODIES_MAX // 2 // 1024**2} MiB of bodies",
        f"client_max_body_size {BODY_MAX // 1024**2}m",
        f"after {TIMEOUT_SECONDS:.0f} s",
        f"{CREDENTIAL_MAX // 1024} KiB",
    ):
        assert figure in page


# --- slow requests ---


@contextmanager
def hanging_munge(path: Path) -> Iterator[list[socket.socket]]:
    """Start a munged that accepts connections and never answers; provide the connections."""
    waiting: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def accept_all() -> None:
            while True:
                try:
                    waiting.append(listener.accept()[0])
                except OSError:
                    return

        acceptor = Thread(target=accept_all, daemon=True)
        acceptor.start()
        try:
            yield waiting
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join(10)
            for connection in waiting:
                connection.close()


def test_hanging_munge_delays_no_report(folder: Path, munged: Munged) -> None:
    """The first report of a server needs the store for its account; so does the first batch."""
    munge = {"socket": str(folder / "silent"), "library": str(munged.libmunge)}
    with (
        hanging_munge(folder / "silent") as waiting,
        served(folder, munge=munge, name="second") as server,
    ):
        secret = server.unix.post("/token", json={"label": "x", "scopes": ["read"]}).json()["data"][
            "secret"
        ]
        partials = [PartialRequest(server, "Munge MUNGE:AAAA:") for _ in range(3 * THREADS)]
        wait_until(lambda: len(waiting) >= THREADS, "all threads to wait for munged")
        assert server.unix.post("/job", json=report(1)).status_code == 404  # unknown project
        assert server.unix.post("/job/bulk", json={"reports": [report(2)]}).status_code == 200
        assert (
            server.tcp.get("/whoami", headers={"Authorization": f"Bearer {secret}"}).status_code
            == 200
        )
        for partial in partials:
            partial.wire.setblocking(False)
            with pytest.raises(BlockingIOError):
                partial.wire.recv(1)
            partial.wire.close()


class SlowLists(MemoryStore):
    """Store whose lists of runs wait until `gate` is open; `waiting` counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()
        self.waiting = 0

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        with super().reading() as reader:
            yield cast("Reader", _Slow(reader, self))


class _Slow:
    def __init__(self, reader: Reader, store: SlowLists) -> None:
        self._reader, self._store = reader, store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def runs(self, *arguments: Any) -> Any:
        self._store.waiting += 1
        self._store.gate.wait(60)
        return self._reader.runs(*arguments)


def test_slow_queries_delay_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is the first one of the server, so that its account must be read from the store;
    likewise in the batch.
    """
    monkeypatch.setattr(job, "HELP_SECONDS", 0.05)
    store = SlowLists()
    with create_world(store) as world, ThreadPoolExecutor(2 * THREADS) as pool:
        lists = [pool.submit(world.ask, "GET", "/job", SUPERUSER) for _ in range(2 * THREADS)]
        try:
            wait_until(lambda: store.waiting >= THREADS, "all threads to read lists")
            world.clock.at = cast("Any", NOW + 60)  # the project cache has expired
            assert world.ask("POST", "/job", AGENT, json=report(1)).status_code == 201
            assert (
                world.ask("POST", "/job/bulk", AGENT, json={"reports": [report(2)]}).status_code
                == 200
            )
            refused = world.ask("POST", "/job", AGENT, json=report(3, amount=10**12))
            assert refused.status_code == 402  # without waiting for remedies
            assert not any(task.done() for task in lists)
        finally:
            store.gate.set()
        assert [task.result().status_code for task in lists] == [200] * len(lists)
