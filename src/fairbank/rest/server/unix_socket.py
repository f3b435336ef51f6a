"""The server's Unix socket: where it is, who may replace it, and what a dead server left behind."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISSOCK, S_ISVTX

from fairbank.core.errors import Conflict, FairbankError, Forbidden, InvalidInput


def bind_unix(path: Path, *, mode: int = 0o666, backlog: int = 512) -> socket.socket:
    """A listening socket at `path`, in place of one that a dead server left behind; its folder is made if missing.

    With mode 0o666 every local user may ask; who asks is told by SO_PEERCRED. Raises Conflict when a server answers there or
    something else is in the way, Forbidden when others could put their own socket in its place, InvalidInput for a path too long.
    """
    if len(os.fsencode(path)) > _PATH_MAX:
        raise InvalidInput(
            f"{path} is too long for a socket", field="socket", remedy=f"at most {_PATH_MAX} bytes"
        )
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
            f"cannot make the socket {path}: {bad.strerror}",
            field="socket",
            remedy="choose a folder of the bank's user",
        ) from bad
    except FairbankError:
        listener.close()
        raise
    return listener


_PATH_MAX = 107  # sun_path, less its NUL


def _check_folder(folder: Path) -> None:
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o755)  # whatever the umask
    kept = folder.stat()
    if kept.st_uid not in (0, os.geteuid()) or (
        kept.st_mode & 0o022 and not kept.st_mode & S_ISVTX
    ):
        raise Forbidden(
            f"others can replace a socket in {folder}",
            field="socket",
            remedy=f"chown it to the bank's user; chmod go-w {folder}",
        )


@contextmanager
def _alone_at(path: Path) -> Iterator[None]:
    """Two servers that start at once must not both find a stale socket, each removing the other's new one."""
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
        found = path.lstat()
    except FileNotFoundError:
        return
    if not S_ISSOCK(found.st_mode):
        raise Conflict(
            f"{path} is there already and is no socket",
            field="socket",
            remedy="choose another path",
        )
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
