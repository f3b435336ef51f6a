"""Atomic writes: a file is either complete or unchanged."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EACCES, EISDIR
from pathlib import Path
from stat import S_IMODE, S_ISREG
from threading import current_thread, main_thread
from typing import BinaryIO, NamedTuple, NoReturn

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_STREAMS = {"/dev/stdout": 1, "/dev/stderr": 2}
_NAME_MAX = 200
"""Characters of the name that the temporary file's name repeats; it has 17 more."""


class _TemporaryFile(NamedTuple):
    """New, empty file in the directory of the file that it will replace."""

    path: Path
    handle: int


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end of the block, with the same owner and
    mode.

    If the block fails, or is interrupted (Ctrl-C, SIGTERM), `path` is unchanged and the temporary
    file is deleted. A pipe, a device or /dev/stdout is written directly; so is a file in a
    directory where we may create none, or whose owner we may not set. Raises OSError.
    """
    place = _real_path(path)
    with _signals_as_exit():
        aside = _open_temporary(path, place)
        if aside is None:
            with _open_directly(path) as file:
                yield file
            return
        try:
            with os.fdopen(aside.handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())  # some file systems report a full disk only here
            aside.path.replace(place)
        except BaseException:
            aside.path.unlink(missing_ok=True)
            raise


def check_writable(path: Path) -> None:
    """Raise OSError if `atomic_write` cannot write this path. Changes nothing; call it before long
    work.
    """
    if (aside := _open_temporary(path, _real_path(path))) is not None:
        os.close(aside.handle)
        aside.path.unlink()
    elif (number := _descriptor_of(path)) is not None:
        os.fstat(number)
    elif path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    elif not os.access(path, os.W_OK):  # opening a pipe would wait for its reader
        raise PermissionError(EACCES, os.strerror(EACCES), str(path))


def _real_path(path: Path) -> Path:
    """Return the target of a link, so that the link stays. A circle of links gives one of them."""
    return Path(os.path.realpath(path))


def _open_directly(path: Path) -> BinaryIO:
    number = _descriptor_of(path)
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


def _descriptor_of(path: Path) -> int | None:
    """Return the descriptor of a name such as /dev/stdout or bash's >(...); None for other names.

    Opened by name, a regular file behind it would be truncated under the process that writes to it,
    such as our own output.
    """
    name = str(path)
    if name in _STREAMS:
        return _STREAMS[name]
    directory, _, number = name.rpartition("/")
    return (
        int(number)
        if directory in ("/dev/fd", "/proc/self/fd") and number.isascii() and number.isdigit()
        else None
    )


def _open_temporary(path: Path, place: Path) -> _TemporaryFile | None:
    """Create the temporary file; None for what is written directly."""
    if _descriptor_of(path) is not None:
        return None
    known = path.stat() if path.exists() else None
    if known is not None and not S_ISREG(known.st_mode):
        return None
    beside = place.with_name(f".{place.name[:_NAME_MAX]}.{os.urandom(8).hex()}")
    try:
        aside = _TemporaryFile(
            beside, os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        )
    except PermissionError:
        if known is None:
            raise
        return None
    if known is None or _copy_owner_and_mode(aside, known):
        return aside
    os.close(aside.handle)
    beside.unlink()
    return None


def _copy_owner_and_mode(aside: _TemporaryFile, known: os.stat_result) -> bool:
    """Give the temporary file the owner and mode of the old one. Returns False if that is not
    allowed.
    """
    made = os.fstat(aside.handle)
    try:
        if (made.st_uid, made.st_gid) != (known.st_uid, known.st_gid):
            os.fchown(aside.handle, known.st_uid, known.st_gid)
    except PermissionError:
        return False
    os.fchmod(aside.handle, S_IMODE(known.st_mode))
    return True


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into SystemExit, unless the program has its own handlers."""
    ours = (
        [signum for signum in _SIGNALS if signal.getsignal(signum) is signal.SIG_DFL]
        if current_thread() is main_thread()
        else []
    )
    for signum in ours:
        signal.signal(signum, _exit)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, signal.SIG_DFL)


def _exit(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)  # the exit status that a shell shows for a signal
