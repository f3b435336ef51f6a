"""The path of the Unix socket: modes, ownership, and files that are kept there."""

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
def place() -> Iterator[Path]:
    """Provide a path short enough for a socket."""
    folder = Account.ourselves().own_folder("fb-so-", mode=0o755)
    yield folder / "run" / "http"
    shutil.rmtree(folder)


@pytest.mark.parametrize("mode", [0o666, 0o660, 0o600])
def test_socket_and_directory_have_their_modes_with_any_umask(place: Path, mode: int) -> None:
    before = os.umask(0o077)
    try:
        with bind_unix(place, mode=mode):
            assert stat.S_IMODE(place.stat().st_mode) == mode
            assert stat.S_ISSOCK(place.stat().st_mode)
            assert stat.S_IMODE(place.parent.stat().st_mode) == 0o755
    finally:
        os.umask(before)


def test_socket_of_a_running_server_is_kept(place: Path) -> None:
    with bind_unix(place) as living:
        with pytest.raises(Conflict, match="already listening at"):
            bind_unix(place)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place))
            living.accept()[0].close()


def test_server_with_a_full_backlog_is_running(place: Path) -> None:
    with bind_unix(place, backlog=0):
        waiting = []
        while True:
            client = socket.socket(socket.AF_UNIX)
            waiting.append(client)
            client.setblocking(False)
            if client.connect_ex(str(place)):
                break
        with pytest.raises(Conflict, match="already listening at"):
            bind_unix(place)
        for client in waiting:
            client.close()


def test_stale_socket_is_replaced(place: Path) -> None:
    bind_unix(place).close()
    with bind_unix(place) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
        listener.accept()[0].close()


def test_one_of_concurrent_servers_gets_the_path(place: Path) -> None:
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


def test_path_that_is_no_socket_is_refused(place: Path) -> None:
    place.parent.mkdir()
    place.write_text("precious")
    with pytest.raises(Conflict, match="not a socket"):
        bind_unix(place)
    link = place.with_name("link")
    link.symlink_to(place)
    with pytest.raises(Conflict, match="not a socket"):
        bind_unix(link)
    assert place.read_text() == "precious"


def test_directory_writable_by_others_is_refused(place: Path) -> None:
    place.parent.mkdir()
    for mode in (0o777, 0o775, 0o757):
        place.parent.chmod(mode)
        with pytest.raises(Forbidden, match="others can replace") as no:
            bind_unix(place)
        assert f"chmod go-w {place.parent}" in (no.value.remedy or "")
    place.parent.chmod(0o1777)  # as /tmp: everybody writes, nobody removes what is not his
    bind_unix(place).close()


@needs_root
def test_directory_of_another_user_is_refused(place: Path) -> None:
    place.parent.mkdir()
    Account.number(54_321).give(place.parent)
    with pytest.raises(Forbidden):
        bind_unix(place)


def test_too_long_path_is_refused(place: Path) -> None:
    with pytest.raises(InvalidInput, match="too long") as bad:
        bind_unix(place.with_name("x" * 108))
    assert bad.value.field == "socket"
    with pytest.raises(Forbidden, match="cannot create the socket"):
        bind_unix(place.parent / "no" / "such" / "folder")
