"""Who is at the other end of the Unix socket, by the kernel's word."""

from __future__ import annotations

import os
import pwd
import socket
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

EXTENSION = "fairbank.peer"


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


def peer_at(connection: socket.socket | None) -> Peer | None:
    """The process at the other end of a connection over a Unix socket; None for any other."""
    if connection is None or connection.family != socket.AF_UNIX:
        return None
    return Peer(
        *_UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    )


_UCRED = struct.Struct("iII")  # pid, uid, gid
