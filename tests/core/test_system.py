"""Errors of the operating system, each with its error class and remedy."""

from __future__ import annotations

import errno
import os

import pytest

from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.os_errors import is_full, translate_os_error


@pytest.mark.parametrize(
    ("number", "kind", "phrase", "remedy"),
    [
        (errno.ENOSPC, FairbankError, "the disk is full", "free disk space"),
        (errno.EDQUOT, FairbankError, "the disk is full", "free disk space"),
        (errno.EROFS, Forbidden, "read-only", "can be written"),
        (errno.EACCES, Forbidden, "you may not write there", "of your own"),
        (errno.ENOTDIR, InvalidInput, "a file of that name is in the way", "name another"),
        (errno.ENOENT, NotFound, "no such file or directory", "name a path"),
        (errno.EIO, FairbankError, "Input/output error", "who runs this host"),
    ],
)
def test_each_system_error_has_its_class_and_remedy(
    number: int, kind: type[FairbankError], phrase: str, remedy: str
) -> None:
    error = OSError(number, os.strerror(number))
    trouble = translate_os_error(error, "cannot make /x", field="DIRECTORY")
    assert (type(trouble), trouble.field) == (kind, "DIRECTORY")
    assert trouble.message.startswith("cannot make /x: ")
    assert phrase in trouble.message
    assert remedy in str(trouble.remedy)
    assert is_full(error) == (phrase == "the disk is full")
