"""Names that the bank knows, for completion.

Answers of the bank are cached for some minutes. A shell waits at most TIMEOUT_SECONDS: then it gets
the names that have arrived, or those of the cache. Errors give no names: a completion is no place
to report them.
"""

from __future__ import annotations

import os
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from fairbank.cli.framework.host import user_name
from fairbank.client_file import user_directory
from fairbank.core.errors import FairbankError
from fairbank.report.cells import plain
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairbank.cli.framework.client_settings import Settings

TIMEOUT_SECONDS = 0.75
"""Limit of the bank's answer. With the start of Python a completion stays near a second."""
CACHE_SECONDS = 300
RETRY_SECONDS = 30
"""Time in which a bank that did not answer is not asked again."""
PAGE = 1_000


class Name(NamedTuple):
    """Name with a short description."""

    word: str
    about: str = ""


KINDS = ("projects", "users", "partitions", "clusters", "resources", "allocations")


def _names(bank: Client, kind: str) -> Iterator[Name]:
    """Yield the names of a kind; a name may come several times."""
    match kind:
        case "projects":
            for row in _rows(bank, "/project"):
                yield Name(row["account"], f"group {row['gname']}")
        case "users":
            for project in _rows(bank, "/project"):
                for row in _rows(bank, f"/project/{project['id']}/member"):
                    yield Name(user_name(row["uid"]), project["account"])
        case "partitions":
            for cluster, partition in _partitions(bank):
                yield Name(partition["name"], f"{cluster['name']}, bills {partition['resource']}")
        case "clusters":
            for cluster in _rows(bank, "/cluster"):
                yield Name(cluster["name"])
        case "resources":
            for _, partition in _partitions(bank):
                yield Name(partition["resource"])
            for row in _rows(bank, "/balance"):
                yield Name(row["resource"])
        case "allocations":
            for row in _rows(bank, "/alloc"):
                yield Name(str(row["id"]), f"{row['account']}/{row['resource']} {row['state']}")


def _partitions(bank: Client) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each partition after its cluster."""
    for cluster in _rows(bank, "/cluster"):
        for partition in cluster["partitions"]:
            yield cluster, partition


def _rows(bank: Client, path: str) -> Iterator[dict[str, Any]]:
    after: object = None
    while True:
        answer = bank.get(path, {"limit": PAGE, "after": after} if path != "/cluster" else None)
        yield from answer["data"]
        after = answer.get("next")
        if not after:
            return


def find_names(kind: str, settings: Settings, acting_as: str | None) -> list[Name]:
    """Return the names of a kind, from the cache if it is fresh.

    Args:
        kind: one of KINDS.
        settings: the address of the bank, and how to sign in.
        acting_as: value of --as, whose names are cached apart; None: the user who types.
    """
    cache = NameCache(_cache_path(kind, settings, acting_as))
    fresh = cache.fresh()
    return _query(kind, settings, acting_as, cache) if fresh is None else fresh


def _query(kind: str, settings: Settings, acting_as: str | None, cache: NameCache) -> list[Name]:
    """Return the names that the bank sends in time; cached ones if there are none."""
    names: dict[str, Name] = {}
    complete = False

    def ask() -> None:
        nonlocal complete
        try:
            bank = Client(
                settings.address,
                signer=settings.signer(),
                acting_as=acting_as,
                timeout_seconds=TIMEOUT_SECONDS,
            )
            for name in _names(bank, kind):
                if is_plain_word(name.word):
                    names.setdefault(name.word, name)
            complete = True
        except (FairbankError, OSError, KeyError, TypeError):
            pass

    # A thread, because the timeout of the client covers only one read, and because the host's
    # user database may hang too. The process exits without waiting for the thread.
    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(TIMEOUT_SECONDS)
    result = list(names.values()) if complete or names else cache.read()
    cache.write(result, retry_soon=not complete and not names)
    return result


def is_plain_word(word: str) -> bool:
    """Return True if no shell expands the word: shells expand what completion offers."""
    return (
        word.isascii()
        and not word.startswith("-")
        and bool(word)
        and all(character.isalnum() or character in "_.@+-" for character in word)
    )


def _cache_path(kind: str, settings: Settings, acting_as: str | None) -> str:
    """Return the file for this kind, bank and user; empty without a home directory."""
    directory = user_directory(os.environ, "XDG_CACHE_HOME", "~/.cache")
    user = f"{settings.address} {os.geteuid()} {acting_as} {settings.token_file}"
    return directory and f"{directory}/fairbank/{kind}-{crc32(user.encode()):08x}"


class NameCache:
    """Names in a file. A file that cannot be read or written is ignored."""

    def __init__(self, path: str) -> None:
        self._path = path

    def fresh(self) -> list[Name] | None:
        """Return the names; None if they are too old."""
        try:
            age = time.time() - os.stat(self._path).st_mtime
        except OSError:
            return None
        return self.read() if 0 <= age < CACHE_SECONDS else None

    def read(self) -> list[Name]:
        """Return the names of any age."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                lines = [line.rstrip("\n").partition("\t") for line in file]
        except OSError:
            return []
        return [Name(word, about) for word, _, about in lines if is_plain_word(word)]

    def write(self, names: list[Name], *, retry_soon: bool) -> None:
        """Store names; `retry_soon` sets their age so that they are fresh for RETRY_SECONDS."""
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            temporary = f"{self._path}.{os.getpid()}"
            with open(temporary, "w", encoding="utf-8", errors="replace") as file:
                file.writelines(f"{word}\t{plain(about)}\n" for word, about in names)
            if retry_soon:
                then = time.time() - CACHE_SECONDS + RETRY_SECONDS
                os.utime(temporary, (then, then))
            os.replace(temporary, self._path)
        except OSError:
            pass
