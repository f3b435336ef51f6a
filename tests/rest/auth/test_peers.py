"""Identity of local peers: it comes from the kernel, and no data of a client changes it."""

from __future__ import annotations

import grp
import os
import pwd
from contextlib import closing

import pytest

from fairbank.rest.auth.peers import Peer, groups_of, members_of, peer_of
from fairbank.unix_users import user_name
from tests.rest.server.echo_server import (
    EchoServer,
    as_user,
    ask,
    needs_root,
    read_response,
    request,
)
from tests.support.account import Account

# --- peers ---


def test_peer_is_the_connecting_process(server: EchoServer) -> None:
    with server.unix() as connection:
        for _ in range(3):  # keep-alive
            seen = ask(connection, request())
            assert Peer(*seen["peer"]) == Peer(os.getpid(), os.geteuid(), os.getegid())
            assert seen["extensions"] == ["fairbank.peer"]


@needs_root
@pytest.mark.parametrize(
    "account", [Account.nobody(), Account(54_321, 54_322), Account(4_000_000_000, 4_000_000_001)]
)
def test_peer_of_another_user_has_that_uid(server: EchoServer, account: Account) -> None:
    def seen_peer() -> object:
        with server.unix() as connection:
            return [os.getpid(), ask(connection, request())["peer"]]

    pid, peer = as_user(account, seen_peer)
    assert Peer(*peer) == Peer(pid, account.uid, account.gid)


def test_pipelined_requests_have_the_peer(server: EchoServer) -> None:
    with server.unix() as connection:
        connection.sendall(
            request("/a") + request("/b", body=b"x" * 10, method="POST") + request("/c")
        )
        for _ in range(3):
            assert read_response(connection)[1]["peer"][1] == os.geteuid()


def test_user_without_a_name_has_the_number() -> None:
    assert user_name(os.geteuid()) == pwd.getpwuid(os.geteuid()).pw_name
    assert user_name(4_000_000_001) == "4000000001"


FORGED = (
    "fairbank.peer: 0",
    "Fairbank-Peer: [0, 0, 0]",
    "extensions: {'fairbank.peer': (0, 0, 0)}",
    "X-Forwarded-For: 127.0.0.1",
    "Forwarded: for=unix:",
    "REMOTE_USER: root",
)


def test_tcp_connection_has_no_peer(server: EchoServer) -> None:
    with closing(server.tcp()) as connection:
        seen = ask(connection, request("/?fairbank.peer=0", *FORGED))
    assert (seen["peer"], seen["extensions"]) == (None, [])


def test_headers_do_not_change_the_peer(server: EchoServer) -> None:
    with server.unix() as connection:
        seen = ask(connection, request("/?fairbank.peer=0", *FORGED))
    assert seen["peer"][1] == os.geteuid()


def test_upgrade_does_not_change_the_peer(server: EchoServer) -> None:
    with closing(server.tcp()) as connection:
        assert ask(connection, request("/", "Connection: Upgrade", "Upgrade: h2c"))["peer"] is None
    with closing(server.tcp()) as connection:
        connection.sendall(request("/", "Connection: Upgrade", "Upgrade: websocket"))
        assert read_response(connection)[0] == 400


def test_only_a_peer_object_in_the_scope_counts() -> None:
    for extensions in (None, {}, {"fairbank.peer": (1, 0, 0)}, {"fairbank.peer": {"uid": 0}}):
        assert peer_of({"extensions": extensions}) is None
    assert peer_of({}) is None
    assert peer_of({"extensions": {"fairbank.peer": Peer(1, 2, 3)}}) == Peer(1, 2, 3)


# --- groups ---


def test_groups_are_those_of_the_system() -> None:
    user = pwd.getpwuid(os.geteuid())
    assert groups_of(user.pw_uid) == set(os.getgrouplist(user.pw_name, user.pw_gid))
    assert user.pw_gid in groups_of(user.pw_uid)


@pytest.mark.parametrize("uid", [54_321, 2**32 - 1, 2**32, 2**70, -1, -2])
def test_uid_without_a_login_has_no_groups(uid: int) -> None:
    assert groups_of(uid) == frozenset()


def test_users_of_a_group_are_those_whose_groups_contain_it() -> None:
    user = pwd.getpwuid(os.getuid())
    listed = next((group for group in grp.getgrall() if group.gr_mem), None)
    assert user.pw_uid in members_of(user.pw_gid)
    for gid in {user.pw_gid, user.pw_gid if listed is None else listed.gr_gid}:
        assert all(gid in groups_of(uid) for uid in members_of(gid))
    assert members_of(2**31 + 11) == frozenset()
