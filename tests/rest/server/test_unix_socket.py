"""Path of the Unix socket: modes, ownership, and other files at that path."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairbank.core.errors import Conflict, Forbidden, InvalidInput
from fairbank.rest.server.unix_socket import bind_unix
from tests.rest.server.echo_server import needs_root
from tests.support.account import Account


@pytest.fixture
def path() -> Iterator[Path]:
    """Provide a path that is short enough for a socket."""
    folder = Account.ourselves().own_folder("fb-so-", mode=0o755)
    yield folder / "run" / "http"
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o600])
def test_socket_and_directory_have_their_modes_with_any_umask(path: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        with bind_unix(path, mode=mode):
            assert stat.S_IMODE(path.stat().st_mode) == mode
            assert stat.S_ISSOCK(path.stat().st_mode)
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755
    finally:
        os.umask(before)


def test_socket_of_a_running_server_is_kept(path: Path) -> None:
    with bind_unix(path) as living:
        with pytest.raises(Conflict, match="already listening at"):
            bind_unix(path)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            living.accept()[0].close()


def test_server_with_a_full_backlog_is_running(path: Path) -> None:
    with bind_unix(path, backlog=0):
        waiting = []
        while True:
            client = socket.socket(socket.AF_UNIX)
            waiting.append(client)
            client.setblocking(False)
            if client.connect_ex(str(path)):
                break
        with pytest.raises(Conflict, match="already listening at"):
            bind_unix(path)
        for client in waiting:
            client.close()


def test_stale_socket_is_replaced(path: Path) -> None:
    bind_unix(path).close()
    with bind_unix(path) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        listener.accept()[0].close()


def test_one_of_concurrent_servers_gets_the_path(path: Path) -> None:
    def start(_: int) -> socket.socket | None:
        try:
            return bind_unix(path)
        except Conflict:
            return None

    for _ in range(20):
        with ThreadPoolExecutor(6) as threads:
            winners = list(filter(None, threads.map(start, range(6))))
        assert len(winners) == 1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            winners[0].accept()[0].close()
        winners[0].close()  # leaves a stale socket for the next round


def test_path_that_is_no_socket_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("precious")
    with pytest.raises(Conflict, match="not a socket"):
        bind_unix(path)
    link = path.with_name("link")
    link.symlink_to(path)
    with pytest.raises(Conflict, match="not a socket"):
        bind_unix(link)
    assert path.read_text() == "precious"


def test_directory_writable_by_others_is_refused(path: Path) -> None:
    path.parent.mkdir()
    for mode in (0o777, 0o775, 0o757):
        path.parent.chmod(mode)
        with pytest.raises(Forbidden, match="others can replace") as raised:
            bind_unix(path)
        assert f"chmod go-w {path.parent}" in (raised.value.remedy or "")
    path.parent.chmod(0o1777)  # as /tmp: with the sticky bit, users cannot remove files of others
    bind_unix(path).close()


@needs_root
def test_directory_of_another_user_is_refused(path: Path) -> None:
    path.parent.mkdir()
    Account.number(54_321).give(path.parent)
    with pytest.raises(Forbidden):
        bind_unix(path)


def test_too_long_path_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInput, match="too long") as bad:
        bind_unix(path.with_name("x" * 108))
    assert bad.value.field == "socket"
    with pytest.raises(Forbidden, match="cannot create the socket"):
        bind_unix(path.parent / "no" / "such" / "folder")
