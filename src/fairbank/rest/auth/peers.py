"""Identity of the process at the other end of a Unix socket (SO_PEERCRED)."""

from __future__ import annotations

import grp
import os
import pwd
import socket
import struct
from asyncio import BaseTransport
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

EXTENSION = "fairbank.peer"

_UCRED = struct.Struct("iII")  # pid, uid, gid


class Peer(NamedTuple):
    """The process that opened a connection, as it was at that moment."""

    pid: int
    uid: int
    gid: int


def peer_at(connection: socket.socket | None) -> Peer | None:
    """Return the peer of a connection over a Unix socket; None for any other connection."""
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    ucred = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return Peer(*_UCRED.unpack(ucred))


def is_own_user(transport: BaseTransport) -> bool:
    """Return True if root, or the user of this process, is at the other end of a Unix socket."""
    peer = peer_at(transport.get_extra_info("socket"))
    return peer is not None and peer.uid in (0, os.geteuid())


def peer_of(scope: Mapping[str, Any]) -> Peer | None:
    """Return the peer of an ASGI request; None for a connection over a network.

    Only the server's protocol class writes this extension; no data of a client reaches it.
    """
    peer = (scope.get("extensions") or {}).get(EXTENSION)
    return peer if isinstance(peer, Peer) else None


def groups_of(uid: int) -> frozenset[int]:
    """Return all groups of a user, the primary one included; none for an unknown uid.

    It may query LDAP: call it in a worker thread.
    """
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    return frozenset(os.getgrouplist(user.pw_name, user.pw_gid))


def members_of(gid: int) -> frozenset[int]:
    """Return the users of a group: those that it lists, and those whose primary group it is, as far
    as this host lists its users.

    It may query LDAP: call it in a worker thread.
    """
    members = {user.pw_uid for user in pwd.getpwall() if user.pw_gid == gid}
    with suppress(KeyError):  # no such group
        for name in grp.getgrgid(gid).gr_mem:
            with suppress(KeyError):  # no such user
                members.add(pwd.getpwnam(name).pw_uid)
    return frozenset(members)
