"""Backup file: gzip of JSON lines.

The first line names the format and the bank, then come the rows of each table, and last a line
with their number and SHA-256, so that a truncated file is noticed. Tokens are stored as digests,
without their key.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairbank.bank.allocation import Allocation
from fairbank.bank.entry import Entry
from fairbank.bank.project import Member, Project
from fairbank.bank.query import UserRow
from fairbank.bank.run import RunRecord
from fairbank.bank.token import Token
from fairbank.bank.transaction_data import RegistryHead
from fairbank.cluster.share import ShareRecord
from fairbank.core.errors import Corrupt, InvalidInput, NotFound
from fairbank.core.progress import Progress
from fairbank.core.time import Instant, iso
from fairbank.store.contract import Reader

FORMAT = "fairbank.backup/6"
_OLDER_FORMATS = frozenset(f"fairbank.backup/{version}" for version in (1, 2, 3, 4, 5))
"""Formats from before the first release."""
ROWS_AT_ONCE = 5_000
_LINE_MAX = 1 << 20

# Kinds of rows by their name in the file, in the order in which they can be restored.
_KINDS: dict[str, type] = {
    "project": Project,
    "member": Member,
    "allocation": Allocation,
    "user": UserRow,
    "run": RunRecord,
    "entry": Entry,
    "registry": RegistryHead,
    "token": Token,
    "share": ShareRecord,
}


def write(
    out: gzip.GzipFile, reader: Reader, at: Instant, progress: Progress | None, bank: str | None
) -> int:
    """Write all rows of the reader, with the time of the backup. Returns the number of rows.

    Args:
        out: the packed file, opened for writing.
        reader: one snapshot of the store.
        at: the time of the backup.
        progress: called now and then with the number of entries written, and of all entries; None
            saves counting them.
        bank: the name of the bank; None if it is not known.
    """
    digest, rows, entries, of = hashlib.sha256(), 0, 0, reader.count_entries() if progress else 0
    encode = msgspec.json.Encoder().encode
    out.write(encode({"format": FORMAT, "at": iso(at), "bank": bank}) + b"\n")
    for name, kind in _KINDS.items():
        for row in [reader.registry()] if kind is RegistryHead else reader.scan(kind):
            line = encode([name, row]) + b"\n"
            digest.update(line)
            out.write(line)
            rows += 1
            entries += kind is Entry
            if progress and rows % ROWS_AT_ONCE == 0:
                progress(entries, of)
    if progress:
        progress(of, of)
    out.write(encode({"rows": rows, "sha256": digest.hexdigest()}) + b"\n")
    return rows


def verify_file(path: Path, progress: Progress | None = None) -> int:
    """Read a backup to its end without restoring it, and return the number of rows.

    Raises Corrupt for a damaged file, InvalidInput for another kind of file, NotFound.
    """
    return sum(1 for _ in _lines(path, progress))


def bank_of(path: Path) -> str | None:
    """Return the name of the bank in a backup, None if it has none. Raises as `verify_file`."""
    with _opened(path) as stream:
        name = _read_header(stream, path).get("bank")
    return name if isinstance(name, str) else None


def chunks(path: Path) -> Iterator[tuple[type, list[Any]]]:
    """Yield the rows of a backup, some thousands of one kind at a time. Raises as `verify_file`."""
    for name, group in groupby(_lines(path), key=itemgetter(0)):
        kind = _KINDS[name]
        while chunk := [_row(line, kind) for line in islice(group, ROWS_AT_ONCE)]:
            yield kind, chunk


def _lines(path: Path, progress: Progress | None = None) -> Iterator[tuple[str, msgspec.Raw]]:
    """Yield the rows with their kinds. Raises Corrupt, for a truncated file at its end."""
    with _opened(path) as stream:
        _read_header(stream, path)
        if progress is None:
            yield from _rows(stream, path)
            return
        # The packed file shows how far it was read.
        done, of = getattr(stream, "fileobj", None), max(1, path.stat().st_size)
        for count, line in enumerate(_rows(stream, path), 1):
            yield line
            if done is not None and count % ROWS_AT_ONCE == 0:
                progress(min(done.tell(), of), of)
        progress(of, of)


@contextmanager
def _opened(path: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(path, "rb") as stream:
            yield stream
    except (EOFError, zlib.error, gzip.BadGzipFile) as bad:
        raise Corrupt(
            f"{path} is damaged: {bad}", field="file", remedy="use another backup"
        ) from bad
    except OSError as error:
        remedy = "name a file made by: fairbank backup create"
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field="file", remedy=remedy
        ) from error


def _read_header(stream: gzip.GzipFile, path: Path) -> dict[str, Any]:
    header = _decode(stream.readline(_LINE_MAX), dict[str, Any], 1)
    form = header.get("format")
    if form in _OLDER_FORMATS:
        raise InvalidInput(
            f"{path} was written by an older version, from before the first release: its form is"
            f" {form}, and this Fairbank reads {FORMAT}",
            field="file",
            remedy="create a new bank: fairbank init; then a backup of it: fairbank backup create",
        )
    if form != FORMAT:
        raise InvalidInput(
            f"{path} is not a backup of the form {FORMAT}: its form is {form!r:.40}",
            field="file",
            remedy="name a file made by: fairbank backup create",
        )
    return header


def _rows(stream: gzip.GzipFile, path: Path) -> Iterator[tuple[str, msgspec.Raw]]:
    digest = hashlib.sha256()
    for count, line in enumerate(iter(lambda: stream.readline(_LINE_MAX), b"")):
        if line.startswith(b"{"):
            tail = _decode(line, dict[str, Any], count + 2)
            if tail != {"rows": count, "sha256": digest.hexdigest()} or stream.read(1):
                break
            return
        digest.update(line)
        name, row = _decode(line, tuple[str, msgspec.Raw], count + 2)
        if name not in _KINDS:
            raise Corrupt(
                f"line {count + 2}: there is no table {name[:40]!r}",
                field="file",
                remedy="use another backup",
            )
        yield name, row
    raise Corrupt(
        f"{path} is not whole: its count or checksum is missing or wrong",
        field="file",
        remedy="use another backup",
    )


T = TypeVar("T")


def _decode(line: bytes, kind: type[T], number: int) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Corrupt(f"line {number}: {bad}", field="file", remedy="use another backup") from bad


def _row(line: tuple[str, msgspec.Raw], kind: Any) -> Any:
    try:
        return msgspec.json.decode(line[1], type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
        raise Corrupt(
            f"a row of {line[0]} cannot be read: {bad}", field="file", remedy="use another backup"
        ) from bad
