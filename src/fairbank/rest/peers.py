"""Who is at the other end of the Unix socket, by the kernel's word, and how long uvicorn is patient with anybody."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pwd
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISSOCK, S_ISVTX
from typing import TYPE_CHECKING, Any, NamedTuple

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from fairbank.values.trouble import Conflict, Forbidden, Malformed, Trouble

if TYPE_CHECKING:
    from uvicorn._types import ASGIApplication

EXTENSION = "fairbank.peer"
HEAD_MAX = 65_536  # a MUNGE credential of 16 KiB and much else
RECEIVE_SECONDS = 30.0


class Peer(NamedTuple):
    """The process that opened the connection, as it was at that moment (SO_PEERCRED)."""

    pid: int
    uid: int
    gid: int


def peer_of(scope: Mapping[str, Any]) -> Peer | None:
    """The local asker of an ASGI request; None for a connection that came over a network.

    Only `PeerProtocol` writes this place; nothing that a client sends ends up in it.
    """
    peer = (scope.get("extensions") or {}).get(EXTENSION)
    return peer if isinstance(peer, Peer) else None


def groups_of(uid: int) -> frozenset[int]:
    """Every group of a user as the system knows it, the primary one included; none for an unknown uid.

    It may ask LDAP: call it from a worker thread.
    """
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    return frozenset(os.getgrouplist(user.pw_name, user.pw_gid))


class _TooLarge(Exception):
    """Stops the parser in the middle of a head; uvicorn then calls `send_400_response`."""


class PeerProtocol(HttpToolsProtocol):
    """uvicorn's HTTP, plus the peer in `scope["extensions"]`, a largest head, and a longest time to send a request.

    httptools keeps a header of any size in memory, and uvicorn waits for ever for a request that never ends.
    """

    head_max = HEAD_MAX
    receive_seconds = RECEIVE_SECONDS

    _peer: Peer | None = None
    _head = 0  # bytes of this request's line and headers, trailers too
    _in_head = True
    _unparsed = 0  # bytes since the parser last gave us something: one endless header, or chunk extension
    _deadline: asyncio.TimerHandle | None = None
    _excused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._peer = _peer_of(transport.get_extra_info("socket"))
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        self._received()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > self.head_max and not self.transport.is_closing():
            self._hang_up(_TOO_LARGE)

    def on_message_begin(self) -> None:
        self._head, self._unparsed, self._in_head = 0, 0, True
        self._expect()
        super().on_message_begin()
        self.scope["extensions"] = {} if self._peer is None else {EXTENSION: self._peer}  # type: ignore[dict-item]

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + 32)  # a header costs memory even when it is short
        if self._in_head:  # uvicorn would add trailers to the headers of a request that may be judged already
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unparsed, self._in_head = 0, False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        self._received()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._hang_up(_TOO_LARGE if self._head > self.head_max else _NOT_HTTP)

    def _count(self, size: int) -> None:
        self._unparsed = 0
        self._head += size
        if self._head > self.head_max:
            raise _TooLarge

    def _expect(self) -> None:
        self._received()
        self._deadline = self.loop.call_later(self.receive_seconds, self._late)

    def _received(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _late(self) -> None:
        if self.flow.read_paused or self._excused:  # it is we who did not read; once we do again, a full time is due
            self._excused = self.flow.read_paused
            self._expect()
        else:
            self._hang_up(_TOO_SLOW)

    def _hang_up(self, answer: bytes) -> None:
        """Close, after a word if no answer to this or an earlier request is due or under way."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or (cycle.more_body and not cycle.response_started and not self.pipeline):
            self.transport.write(answer)
        self.transport.close()


def _peer_of(connection: socket.socket | None) -> Peer | None:
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    return Peer(*_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)))


_UCRED = struct.Struct("iII")  # pid, uid, gid


def _last_word(status: int, title: str, detail: str) -> bytes:
    body = json.dumps({"title": title, "status": status, "detail": detail}).encode()
    head = (
        f"HTTP/1.1 {status} {title}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


_NOT_HTTP = _last_word(400, "Bad Request", "this is not HTTP/1.1")
_TOO_SLOW = _last_word(408, "Request Timeout", "the request did not arrive in time; send it again, whole")
_TOO_LARGE = _last_word(431, "Request Header Fields Too Large", f"address and headers together may have {HEAD_MAX} bytes")


def serving(app: ASGIApplication, *, connections_max: int = 1_024, access_log: bool = False) -> Config:
    """How uvicorn serves `app`: with peers, without WebSockets, believing no forwarded address, and bounded.

    Above `connections_max` a request is answered 503. Logging is left as it is.
    """
    return Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        server_header=False,
        log_config=None,
        access_log=access_log,
        limit_concurrency=connections_max,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
    )


def bind_unix(path: Path, *, mode: int = 0o666, backlog: int = 512) -> socket.socket:
    """A listening socket at `path`, in place of one that a dead server left behind; its folder is made if missing.

    With mode 0o666 every local user may ask; who asks is told by SO_PEERCRED. Raises Conflict when a server answers there or
    something else is in the way, Forbidden when others could put their own socket in its place, Malformed for a path too long.
    """
    if len(os.fsencode(path)) > _PATH_MAX:
        raise Malformed(f"{path} is too long for a socket", field="socket", remedy=f"at most {_PATH_MAX} bytes")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _check_folder(path.parent)
        with _alone_at(path):
            _clear(path)
            listener.bind(str(path))
            path.chmod(mode)  # before listen: until then nobody gets in
            listener.listen(backlog)
    except OSError as bad:
        listener.close()
        raise Forbidden(
            f"cannot make the socket {path}: {bad.strerror}", field="socket", remedy="choose a folder of the bank's user"
        ) from bad
    except Trouble:
        listener.close()
        raise
    return listener


_PATH_MAX = 107  # sun_path, less its NUL


def _check_folder(folder: Path) -> None:
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o755)  # whatever the umask
    kept = folder.stat()
    if kept.st_uid not in (0, os.geteuid()) or (kept.st_mode & 0o022 and not kept.st_mode & S_ISVTX):
        raise Forbidden(
            f"others can replace a socket in {folder}", field="socket", remedy=f"chown it to the bank's user; chmod go-w {folder}"
        )


@contextmanager
def _alone_at(path: Path) -> Iterator[None]:
    """Two servers that start at once must not both find a stale socket, each removing the other's new one."""
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as busy:
        raise Conflict(f"another server is starting at {path}", field="socket", remedy=_ONE_SERVER) from busy
    finally:
        os.close(lock)


def _clear(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not S_ISSOCK(found.st_mode):
        raise Conflict(f"{path} is there already and is no socket", field="socket", remedy="choose another path")
    if _answers(path):
        raise Conflict(f"a server answers at {path} already", field="socket", remedy=_ONE_SERVER)
    path.unlink()


def _answers(path: Path) -> bool:
    """Whether somebody listens; in doubt, yes: a full queue is a server too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
        return True


_ONE_SERVER = "stop it first, or choose another socket"
