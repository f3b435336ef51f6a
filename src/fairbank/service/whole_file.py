"""Files that are there whole, or as they were."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Where to write what is to stand at `path`: beside it, and in its place once the block has ended well. When the block fails, or is
    interrupted, `path` is as it was.

    What is no file (a pipe, a terminal) is written as it is; so is a file in a folder in which nothing new may be made. Raises OSError.
    """
    place = path.resolve()  # a link goes on pointing there
    aside = _beside(place)
    try:
        yield aside
        if aside != place:
            aside.replace(place)
    except BaseException:
        if aside != place:
            aside.unlink(missing_ok=True)
        raise


def _beside(place: Path) -> Path:
    """A new, empty file in the same folder, with the rights of the one that is there; or that one, where there can be no other."""
    known = place.exists()
    if known and not place.is_file():
        return place
    aside = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        handle = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except PermissionError:
        if known:
            return place
        raise
    os.close(handle)
    if known:
        aside.chmod(place.stat().st_mode & 0o777)
    return aside
