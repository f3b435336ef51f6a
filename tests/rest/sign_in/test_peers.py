"""The kernel says who asks over the Unix socket; nothing that a client sends can; and nobody holds the server up.

Run as a program (`python -m tests.rest.sign_in.test_peers`), this file is the server that is asked: see `serve`.
"""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import Server, ServerState

from fairbank.rest.server.protocol import HEAD_MAX, PeerProtocol, Serving, serving
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.rest.sign_in.peers import Peer, groups_of, peer_of
from fairbank.values.trouble import Conflict, Forbidden, Malformed
from tests.support.account import Account
from tests.support.keeper import Kept, Order
from tests.support.waiting import wait_until

PATIENCE = 1.0  # how long this server waits for a whole request
MANY = 8  # how many connections one user may have here
CROWD = 16  # and all together, over the Unix socket and over TCP each
HUNG_UP_MEANWHILE = suppress(BrokenPipeError, ConnectionResetError)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


# The server: it says whom it sees, and how many requests have reached it.


def serve(path: str, loop: str) -> None:
    asked = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal asked
        if scope["type"] == "lifespan":
            for _ in ("startup", "shutdown"):
                event = await receive()
                await send({"type": event["type"] + ".complete"})
            return
        asked += 1
        if scope["path"] == "/later":
            await asyncio.sleep(3 * PATIENCE)
        length = 0
        while (event := await receive()).get("more_body"):
            length += len(event["body"])
        length += len(event.get("body", b""))
        peer = peer_of(scope)
        names = [name.decode() for name, _ in scope["headers"]]
        answer = {"peer": peer, "extensions": list(scope["extensions"]), "headers": names, "asked": asked, "length": length}
        said = json.dumps(answer).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(said)).encode())]})
        await send({"type": "http.response.body", "body": said})

    class Impatient(PeerProtocol):
        head_seconds = receive_seconds = PATIENCE
        per_peer_max = MANY

    over_tcp = socket.create_server(("127.0.0.1", 0))
    Path(path + ".port").write_text(str(over_tcp.getsockname()[1]))
    config = serving(app)
    assert config.http is PeerProtocol, "what is tested here is what is served"
    config.http, config.loop, config.limit_concurrency = Impatient, loop, CROWD
    Server(config).run(sockets=[over_tcp, bind_unix(Path(path))])


class Asked:
    """The running server and the ways to ask it."""

    def __init__(self, folder: Path, loop: str, checkout: Path) -> None:
        self.path = str(folder / "http")
        us = Account.ourselves()
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join([str(checkout), *filter(None, sys.path)])}
        command = [sys.executable, "-m", __name__, self.path, loop]
        self.log = log = folder / "log"
        self._kept = Kept(Order(command, environment, str(folder), str(log), us.uid, us.gid, us.groups, 15))
        wait_until(lambda: self._listens() or not self._kept.running, "the server to listen")
        assert self._kept.running, log.read_text()

    def unix(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(10)
        connection.connect(self.path)
        return connection

    def tcp(self, come_from: str = "127.0.0.1") -> socket.socket:
        address = ("127.0.0.1", int(Path(self.path + ".port").read_text()))
        return socket.create_connection(address, timeout=10, source_address=(come_from, 0))

    def close(self) -> None:
        self._kept.stop()

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self.path) == 0


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest, checkout: Path) -> Iterator[Asked]:
    folder = Account.ourselves().own_folder("fb-pe-", mode=0o755)
    running = Asked(folder, request.param, checkout)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder)


def request(path: str = "/", *headers: str, body: bytes = b"", method: str = "GET") -> bytes:
    length = [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: bank", *length, *headers, "", ""]).encode() + body


def answer(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """One answer, as JSON; status 0 when the connection ended instead."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        try:
            byte = connection.recv(1)
        except ConnectionResetError:
            byte = b""
        if not byte:
            return 0, {}
        head += byte
    length = next(int(line.partition(b":")[2]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    body = b""
    while len(body) < length:
        body += connection.recv(length - len(body))
    return int(head.split()[1]), json.loads(body)


def hung_up(connection: socket.socket) -> bool:
    """Waits for more, or for the end. What we sent in vain makes the end a reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(connection: socket.socket, sent: bytes) -> dict[str, Any]:
    connection.sendall(sent)
    status, said = answer(connection)
    assert status == 200
    return said


def as_user(account: Account, task: Callable[[], object]) -> Any:
    """Do the task in a process of this user and hand back its result, through JSON."""
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
    with os.fdopen(reading, "rb") as told:
        result = told.read()
    os.waitpid(child, 0)
    return json.loads(result)


# Who asks.


def test_we_are_seen_as_ourselves(server: Asked) -> None:
    with server.unix() as connection:
        for _ in range(3):  # kept alive
            said = ask(connection, request())
            assert Peer(*said["peer"]) == Peer(os.getpid(), os.geteuid(), os.getegid())
            assert said["extensions"] == ["fairbank.peer"]


@needs_root
@pytest.mark.parametrize("account", [Account.nobody(), Account(54_321, 54_322), Account(4_000_000_000, 4_000_000_001)])
def test_other_users_are_seen_as_they_are(server: Asked, account: Account) -> None:
    def asking() -> object:
        with server.unix() as connection:
            return [os.getpid(), ask(connection, request())["peer"]]

    pid, peer = as_user(account, asking)
    assert Peer(*peer) == Peer(pid, account.uid, account.gid)


def test_pipelined_requests_all_have_the_peer(server: Asked) -> None:
    with server.unix() as connection:
        connection.sendall(request("/a") + request("/b", body=b"x" * 10, method="POST") + request("/c"))
        for _ in range(3):
            assert answer(connection)[1]["peer"][1] == os.geteuid()


FORGED = (
    "fairbank.peer: 0",
    "Fairbank-Peer: [0, 0, 0]",
    "extensions: {'fairbank.peer': (0, 0, 0)}",
    "X-Forwarded-For: 127.0.0.1",
    "Forwarded: for=unix:",
    "REMOTE_USER: root",
)


def test_over_a_network_nobody_is_a_peer_whatever_he_sends(server: Asked) -> None:
    with closing(server.tcp()) as connection:
        said = ask(connection, request("/?fairbank.peer=0", *FORGED))
    assert (said["peer"], said["extensions"]) == (None, [])


def test_headers_do_not_change_the_peer(server: Asked) -> None:
    with server.unix() as connection:
        said = ask(connection, request("/?fairbank.peer=0", *FORGED))
    assert said["peer"][1] == os.geteuid()


def test_an_upgrade_is_not_a_way_around(server: Asked) -> None:
    for upgrade in ("websocket", "h2c"):
        with closing(server.tcp()) as connection:
            said = ask(connection, request("/", "Connection: Upgrade", f"Upgrade: {upgrade}"))
        assert said["peer"] is None


def test_a_look_alike_in_the_scope_is_no_peer() -> None:
    for extensions in (None, {}, {"fairbank.peer": (1, 0, 0)}, {"fairbank.peer": {"uid": 0}}):
        assert peer_of({"extensions": extensions}) is None
    assert peer_of({}) is None
    assert peer_of({"extensions": {"fairbank.peer": Peer(1, 2, 3)}}) == Peer(1, 2, 3)


# Nobody holds the server up.


def test_a_large_head_is_refused_before_the_application(server: Asked) -> None:
    wrong = {
        "one long header": request("/", "X: " + "x" * HEAD_MAX),
        "many short ones": request("/", *["a:"] * 3_000),
        "a long address": request("/" + "x" * HEAD_MAX),
        "long in all": request("/" + "x" * (HEAD_MAX // 2), "X: " + "x" * (HEAD_MAX // 2)),
        "a header without end": b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000,
        "an address without end": b"GET /" + b"x" * 1_000_000,
    }
    with server.unix() as connection:
        before = ask(connection, request())["asked"]
    for what, sent in wrong.items():
        with server.unix() as connection:
            with HUNG_UP_MEANWHILE:
                connection.sendall(sent)
            assert answer(connection)[0] in (431, 0), what
            assert hung_up(connection), what
    with server.unix() as connection:
        assert ask(connection, request("/", "X: " + "x" * (HEAD_MAX // 2)))["asked"] == before + 1


def test_each_request_may_have_a_whole_head(server: Asked) -> None:
    with server.unix() as connection:
        for _ in range(4):
            ask(connection, request("/", "X: " + "x" * (HEAD_MAX // 2)))


def test_trailers_and_chunk_extensions_are_bounded_too(server: Asked) -> None:
    start = request("/", "Transfer-Encoding: chunked", method="POST") + b"1\r\nx\r\n"
    for rest in (b"0\r\n" + b"T: x\r\n" * 3_000, b"0\r\nT: " + b"x" * 1_000_000, b"1;" + b"x" * 1_000_000):
        with server.unix() as connection:
            with HUNG_UP_MEANWHILE:
                connection.sendall(start + rest)
            assert answer(connection)[0] in (431, 0)


def test_trailers_never_become_headers(server: Asked) -> None:
    """Else a second Authorization could arrive after the first was judged."""
    chunks = b"3\r\nabc\r\n0\r\nAuthorization: Bearer fbk_x\r\n\r\n"
    with server.unix() as connection:
        for _ in range(2):
            said = ask(connection, request("/", "Transfer-Encoding: chunked", method="POST") + chunks)
            assert (said["headers"], said["length"]) == (["host", "transfer-encoding"], 3)


def test_a_large_body_is_not_a_large_head(server: Asked) -> None:
    with server.unix() as connection:
        assert ask(connection, request("/", body=b"x" * 2_000_000, method="POST"))["length"] == 2_000_000


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nbad header\r\n\r\n"])
def test_what_is_not_http_is_told_so(server: Asked, sent: bytes) -> None:
    with server.unix() as connection:
        connection.sendall(sent)
        status, problem = answer(connection)
        assert (status, problem["status"], problem["title"]) == (400, 400, "malformed")
        assert problem["type"] == "/problem/malformed"
        assert problem["remedy"]
        assert hung_up(connection)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"GET / HT", request("/", "Content-Length: 10", method="POST") + b"x"])
def test_who_does_not_finish_is_hung_up_on(server: Asked, sent: bytes) -> None:
    with server.unix() as connection:
        begun = time.monotonic()
        connection.sendall(sent)
        status, problem = answer(connection)
        assert (status, problem["title"], problem["type"]) == (408, "request timeout", "/problem/request-timeout")
        assert problem["remedy"] == "send it again, whole"
        assert hung_up(connection)
        assert PATIENCE * 0.9 < time.monotonic() - begun < PATIENCE * 10


def test_a_drop_now_and_then_does_not_help(server: Asked) -> None:
    with server.unix() as connection:
        connection.settimeout(0.05)
        begun, status = time.monotonic(), -1
        while status == -1 and time.monotonic() - begun < 10 * PATIENCE:
            connection.send(b"G")
            try:
                status = answer(connection)[0]
            except TimeoutError:
                continue
    assert status in (400, 408)


@pytest.mark.slow
def test_a_slow_server_is_not_the_client_s_fault(server: Asked) -> None:
    with server.unix() as short, server.unix() as long:
        short.sendall(request("/later"))
        assert ask(long, request("/later", body=b"x" * 1_000_000, method="POST"))["length"] == 1_000_000
        assert answer(short)[0] == 200
        for connection in (short, long):
            assert ask(connection, request())["length"] == 0, "and the next request has its full time"


def test_one_user_cannot_take_all_connections(server: Asked) -> None:
    held = [server.unix() for _ in range(MANY)]
    try:
        for connection in held:
            ask(connection, request())
        with server.unix() as one_more:
            status, problem = answer(one_more)
            assert (status, problem["title"], problem["detail"]) == (503, "busy", "you have too many connections open")
            assert hung_up(one_more)
        with closing(server.tcp()) as elsewhere:
            ask(elsewhere, request())
        ask(held[0], request())
        if os.geteuid() == 0:
            assert as_user(Account.number(54_321), lambda: ask(server.unix(), request())["peer"][1]) == 54_321
    finally:
        for connection in held:
            connection.close()
    wait_until(lambda: _let_in(server), "the places to be free again")


def test_two_servers_of_one_process_have_connections_of_their_own() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def visit(config: Serving) -> tuple[socket.socket, bytes]:
        loop, (theirs, ours) = asyncio.get_running_loop(), socket.socketpair()
        ours.setblocking(False)
        config.load()
        await loop.connect_accepted_socket(lambda: PeerProtocol(config, ServerState(), {}), theirs)
        await loop.sock_sendall(ours, request())
        return ours, (await loop.sock_recv(ours, 65_536)).splitlines()[0]

    async def two() -> list[bytes]:
        came = [await visit(serving(app, connections_max=1)) for _ in range(2)]
        for ours, _ in came:
            ours.close()
        return [status for _, status in came]

    assert asyncio.run(two()) == [b"HTTP/1.1 204 No Content"] * 2


def test_one_host_cannot_take_all_connections(server: Asked) -> None:
    with ExitStack() as open_ones:
        for _ in range(MANY):
            ask(open_ones.enter_context(closing(server.tcp())), request())
        with closing(server.tcp()) as one_more:
            status, problem = answer(one_more)
        assert (status, problem["detail"]) == (503, "you have too many connections open")
        with closing(server.tcp("127.0.0.2")) as elsewhere:
            ask(elsewhere, request())


def test_whoever_is_too_many_is_told_so_and_the_unix_socket_has_its_own(server: Asked) -> None:
    with ExitStack() as open_ones:
        for host in range(CROWD):
            wait_until(lambda host=host: _enters(server, f"127.0.1.{host}", open_ones), "a place")  # type: ignore[misc]
        with closing(server.tcp("127.0.2.1")) as one_more:
            status, problem = answer(one_more)
        assert (status, problem["type"], problem["detail"]) == (503, "/problem/busy", "too many connections are open")
        assert _let_in(server)
        wait_until(lambda: "connections over TCP are turned away: " in server.log.read_text(), "the log to tell")


def _enters(server: Asked, host: str, open_ones: ExitStack) -> bool:
    """One connection more, unless those of an earlier test are not gone yet."""
    connection = open_ones.enter_context(closing(server.tcp(host)))
    with HUNG_UP_MEANWHILE:
        connection.sendall(request())
    return answer(connection)[0] == 200


def _let_in(server: Asked) -> bool:
    with server.unix() as connection:
        with HUNG_UP_MEANWHILE:
            connection.sendall(request())
        return answer(connection)[0] == 200


def test_head_and_body_of_an_answer_arrive_together(server: Asked) -> None:
    with server.unix() as connection:
        connection.sendall(request())
        assert b'"asked": ' in connection.recv(65_536)


def test_the_log_does_not_tell_what_to_install(server: Asked) -> None:
    with closing(server.tcp()) as connection:
        ask(connection, request("/", "Connection: Upgrade", "Upgrade: websocket"))
    assert "pip install" not in server.log.read_text()


# The socket.


@pytest.fixture
def place() -> Iterator[Path]:
    """A path short enough for a socket."""
    folder = Account.ourselves().own_folder("fb-so-", mode=0o755)
    yield folder / "run" / "http"
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o600])
def test_socket_and_folder_have_the_right_modes_whatever_the_umask(place: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        with bind_unix(place, mode=mode):
            assert stat.S_IMODE(place.stat().st_mode) == mode
            assert stat.S_ISSOCK(place.stat().st_mode)
            assert stat.S_IMODE(place.parent.stat().st_mode) == 0o755
    finally:
        os.umask(before)


def test_a_living_server_is_left_alone(place: Path) -> None:
    with bind_unix(place) as living:
        with pytest.raises(Conflict, match="answers at"):
            bind_unix(place)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            living.accept()[0].close()


def test_a_server_with_a_full_queue_is_alive(place: Path) -> None:
    with bind_unix(place, backlog=0):
        waiting = []
        while True:
            client = socket.socket(socket.AF_UNIX)
            waiting.append(client)
            client.setblocking(False)
            if client.connect_ex(str(place)):
                break
        with pytest.raises(Conflict, match="answers at"):
            bind_unix(place)
        for client in waiting:
            client.close()


def test_what_a_dead_server_left_is_replaced(place: Path) -> None:
    bind_unix(place).close()
    with bind_unix(place) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        listener.accept()[0].close()


def test_of_servers_that_start_together_one_gets_the_place(place: Path) -> None:
    def start(_: int) -> socket.socket | None:
        try:
            return bind_unix(place)
        except Conflict:
            return None

    for _ in range(20):
        with ThreadPoolExecutor(6) as threads:
            winners = list(filter(None, threads.map(start, range(6))))
        assert len(winners) == 1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            winners[0].accept()[0].close()
        winners[0].close()  # and the next round finds a stale one


def test_nothing_else_is_removed(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("precious")
    with pytest.raises(Conflict, match="no socket"):
        bind_unix(place)
    link = place.with_name("link")
    link.symlink_to(place)
    with pytest.raises(Conflict, match="no socket"):
        bind_unix(link)
    assert place.read_text() == "precious"


def test_a_folder_where_others_could_replace_it_is_refused(place: Path) -> None:
    place.parent.mkdir()
    for mode in (0o777, 0o775, 0o757):
        place.parent.chmod(mode)
        with pytest.raises(Forbidden, match="others can replace") as no:
            bind_unix(place)
        assert f"chmod go-w {place.parent}" in (no.value.remedy or "")
    place.parent.chmod(0o1777)  # as /tmp: everybody writes, nobody removes what is not his
    bind_unix(place).close()


@needs_root
def test_a_folder_of_somebody_else_is_refused(place: Path) -> None:
    place.parent.mkdir()
    Account.number(54_321).give(place.parent)
    with pytest.raises(Forbidden):
        bind_unix(place)


def test_a_path_too_long_is_refused(place: Path) -> None:
    with pytest.raises(Malformed, match="too long") as bad:
        bind_unix(place.with_name("x" * 108))
    assert bad.value.field == "socket"
    with pytest.raises(Forbidden, match="cannot make the socket"):
        bind_unix(place.parent / "no" / "such" / "folder")


# Groups.


def test_groups_are_the_system_s() -> None:
    user = pwd.getpwuid(os.geteuid())
    assert groups_of(user.pw_uid) == set(os.getgrouplist(user.pw_name, user.pw_gid))
    assert user.pw_gid in groups_of(user.pw_uid)


@pytest.mark.parametrize("uid", [54_321, 2**32 - 1, 2**32, 2**70, -1, -2])
def test_a_uid_without_a_name_has_no_groups(uid: int) -> None:
    assert groups_of(uid) == frozenset()


if __name__ == "__main__":
    serve(*sys.argv[1:])
