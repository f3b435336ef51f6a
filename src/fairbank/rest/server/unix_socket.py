"""Unix sockets of servers: creation, checks of the directory, and removal of stale ones."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISSOCK

from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput
from fairbank.core.os_errors import can_others_change


def bind_unix(path: Path, *, mode: int = 0o666, backlog: int = 512) -> socket.socket:
    """Listen at `path`, replacing the socket of a dead server. The directory is created if missing.

    Args:
        mode: the socket's mode; with 0o666 every local user may connect (SO_PEERCRED identifies
            them).
        backlog: connections that may wait to be accepted.

    Raises:
        Conflict: a server answers at the path, or something else is there.
        Forbidden: other users could replace the socket.
        InvalidInput: the path is too long.
    """
    if len(os.fsencode(path)) > _PATH_MAX:
        raise InvalidInput(
            f"{path} is too long for a socket", field="socket", remedy=f"at most {_PATH_MAX} bytes"
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _check_directory(path.parent)
        with _locked(path):
            _clear(path)
            listener.bind(str(path))
            path.chmod(mode)  # before listen: until then no process can connect
            listener.listen(backlog)
    except OSError as bad:
        listener.close()
        raise Forbidden(
            f"cannot create the socket {path}: {bad.strerror}",
            field="socket",
            remedy="choose a directory of the bank's user",
        ) from bad
    except FairbankError:
        listener.close()
        raise
    return listener


_PATH_MAX = 107  # sun_path, less its NUL


def _check_directory(directory: Path) -> None:
    with suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(0o755)  # whatever the umask
    status = directory.stat()
    is_foreign = status.st_uid not in (0, os.geteuid())
    if is_foreign or can_others_change(status.st_mode):
        remedy = f"chown it to the bank's user; chmod go-w {directory}"
        raise Forbidden(
            f"others can replace a socket in {directory}",
            field="socket",
            remedy=remedy if is_foreign else f"chmod go-w {directory}",
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock the path: two starting servers must not remove each other's new socket as stale."""
    lock = os.open(
        path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600
    )
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as busy:
        raise Conflict(
            f"another server is starting at {path}", field="socket", remedy=_ONE_SERVER
        ) from busy
    finally:
        os.close(lock)


def _clear(path: Path) -> None:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return
    if not S_ISSOCK(status.st_mode):
        raise Conflict(
            f"{path} exists and is not a socket", field="socket", remedy="choose another path"
        )
    if is_listening(path):
        raise Conflict(
            f"a server is already listening at {path}", field="socket", remedy=_ONE_SERVER
        )
    path.unlink()


def is_listening(path: Path) -> bool:
    """Return True if a server listens. In doubt it does: a full backlog is a server too."""
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
