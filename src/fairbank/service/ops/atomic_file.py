"""Files that are there whole, or as they were."""

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
"""So many characters of the name stand in that of the file beside it, which has 17 more."""


class _TemporaryFile(NamedTuple):
    """A new file, still empty, in the folder of the one that it is to replace."""

    path: Path
    handle: int


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Where to write what is to stand at `path`: a file beside it, which takes its place, rights and owner once the block has ended well.
    When the block fails, or is interrupted or ended (Ctrl-C, SIGTERM), `path` is as it was, and nothing is left beside it.

    What is no file (a pipe, a device, /dev/stdout) is written as it is; so is a file in a folder in which nothing new may be made, or
    whose owner we cannot give to another. Raises OSError.
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
                os.fsync(file.fileno())  # some file systems tell only here that there is no room
            aside.path.replace(place)
        except BaseException:
            aside.path.unlink(missing_ok=True)
            raise


def check_writable(path: Path) -> None:
    """Before the work begins: whether `whole_file` could be written now. What is there stays as it is. Raises OSError."""
    if (aside := _open_temporary(path, _real_path(path))) is not None:
        os.close(aside.handle)
        aside.path.unlink()
    elif (number := _descriptor_of(path)) is not None:
        os.fstat(number)
    elif path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    elif not os.access(path, os.W_OK):  # to open a pipe is to wait for its reader
        raise PermissionError(EACCES, os.strerror(EACCES), str(path))


def _real_path(path: Path) -> Path:
    """What a link points to: it goes on pointing there. Of links in a circle one of them."""
    return Path(os.path.realpath(path))


def _open_directly(path: Path) -> BinaryIO:
    number = _descriptor_of(path)
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


def _descriptor_of(path: Path) -> int | None:
    """The descriptor that a name such as /dev/stdout or bash's >(...) stands for. Opened by its name, a file would begin anew under
    whoever else writes to it, as our own table does to stdout."""
    name = str(path)
    if name in _STREAMS:
        return _STREAMS[name]
    folder, _, number = name.rpartition("/")
    return (
        int(number)
        if folder in ("/dev/fd", "/proc/self/fd") and number.isascii() and number.isdigit()
        else None
    )


def _open_temporary(path: Path, place: Path) -> _TemporaryFile | None:
    """None for what is to be written as it is."""
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
    """Whether the new file has the owner and the rights of the one that is there."""
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
    """Who ends us, or closes our terminal, ends the block like Ctrl-C does; unless that is somebody's affair already."""
    ours = (
        [each for each in _SIGNALS if signal.getsignal(each) is signal.SIG_DFL]
        if current_thread() is main_thread()
        else []
    )
    for each in ours:
        signal.signal(each, _exit)
    try:
        yield
    finally:
        for each in ours:
            signal.signal(each, signal.SIG_DFL)


def _exit(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)  # as a shell tells who was ended by it
