"""Names that the bank knows, for completion: at once or not at all, and never a word of what went wrong.

What a bank answered is kept for some minutes. Who waits for a shell waits no longer than the cap: then what came so far is shown, or
what was known before.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from fairbank.cli.framework.host import user_name
from fairbank.core.errors import FairbankError
from fairbank.report.cells import plain
from fairbank.rest.client import Client

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

CAP_SECONDS = 0.75
"""How long the bank may take. With what Python takes to start it stays under a second."""
FRESH_SECONDS = 300
AGAIN_SECONDS = 30
"""How long a bank that did not answer is left alone."""
PAGE = 1_000


class Name(NamedTuple):
    """A word that may be completed, and a few words about it."""

    word: str
    about: str = ""


def _projects(bank: Client) -> Iterator[Name]:
    for row in _rows(bank, "/project"):
        yield Name(row["account"], f"group {row['gname']}")


def _users(bank: Client) -> Iterator[Name]:
    for project in _rows(bank, "/project"):
        for row in _rows(bank, f"/project/{project['id']}/member"):
            yield Name(user_name(row["uid"]), project["account"])


def _partitions(bank: Client) -> Iterator[Name]:
    for cluster in _rows(bank, "/cluster"):
        for each in cluster["partitions"]:
            yield Name(each["name"], f"{cluster['name']}, bills {each['resource']}")


def _clusters(bank: Client) -> Iterator[Name]:
    for cluster in _rows(bank, "/cluster"):
        yield Name(cluster["name"])


def _resources(bank: Client) -> Iterator[Name]:
    for cluster in _rows(bank, "/cluster"):
        for each in cluster["partitions"]:
            yield Name(each["resource"])
    for row in _rows(bank, "/balance"):
        yield Name(row["resource"])


def _allocations(bank: Client) -> Iterator[Name]:
    for row in _rows(bank, "/alloc"):
        yield Name(str(row["id"]), f"{row['account']}/{row['resource']} {row['state']}")


KINDS: Mapping[str, Callable[[Client], Iterator[Name]]] = {
    "projects": _projects,
    "users": _users,
    "partitions": _partitions,
    "clusters": _clusters,
    "resources": _resources,
    "allocations": _allocations,
}


def _rows(bank: Client, path: str) -> Iterator[dict[str, Any]]:
    after: object = None
    while True:
        answer = bank.get(path, {"limit": PAGE, "after": after} if path != "/cluster" else None)
        yield from answer["data"]
        after = answer.get("next")
        if not after:
            return


def add(parser: Parser) -> None:
    parser.add_argument("kind", metavar="KIND", choices=tuple(KINDS), help=", ".join(KINDS))
    parser.add_argument(
        "--about", action="store_true", help="with a few words about each, after a tab"
    )


def run(context: Context, options: Namespace) -> int:
    try:
        kept = Kept(_place(context, options.kind))
        fresh = kept.fresh()
        _show(_asked(context, options, kept) if fresh is None else fresh, options)
    except (FairbankError, OSError):
        pass  # a shell is no place to read of it: the next command will tell
    return 0


def _show(found: list[Name], options: Namespace) -> None:
    for word, about in found:
        print(f"{word}\t{plain(about)}" if options.about and about else word)
    sys.stdout.flush()


def _asked(context: Context, options: Namespace, kept: Kept) -> list[Name]:
    """What the bank answers within the cap; what it did not is left to the watchdog, which ends this process."""
    from threading import Lock, Timer

    found: dict[str, Name] = {}
    first = Lock()

    def told(*, whole: bool) -> list[Name]:
        names = list(found.values()) if whole or found else kept.known()
        kept.keep(names, again_soon=not whole and not found)
        return names

    def give_up() -> None:
        if first.acquire(blocking=False):
            _show(told(whole=False), options)
            os._exit(0)  # whatever we wait for: the bank, or the host's directory of users

    watchdog = Timer(CAP_SECONDS, give_up)
    watchdog.daemon = True
    watchdog.start()
    whole = True
    try:
        bank = Client(
            context.settings.address,
            signer=context.settings.signer(),
            acting_as=options.acting_as,
            timeout_seconds=CAP_SECONDS,
        )
        for each in KINDS[options.kind](bank):
            if harmless(each.word):
                found.setdefault(each.word, each)
    except (FairbankError, KeyError, TypeError):
        whole = False
    if not first.acquire(blocking=False):
        watchdog.join()
    watchdog.cancel()
    return told(whole=whole)


def harmless(word: str) -> bool:
    """Whether a shell takes it for a plain word: they expand what completion offers them."""
    return (
        word.isascii()
        and not word.startswith("-")
        and bool(word)
        and all(each.isalnum() or each in "_.@+-" for each in word)
    )


def _place(context: Context, kind: str) -> str:
    """A file for each bank, user and kind."""
    from zlib import crc32

    folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    whose = f"{context.settings.address} {os.geteuid()} {context.options.acting_as} {context.settings.token_file}"
    return os.path.join(folder, "fairbank", f"{kind}-{crc32(whose.encode()):08x}")


class Kept:
    """What a bank answered before, in a file. One that cannot be written is done without."""

    def __init__(self, path: str) -> None:
        self._path = path

    def fresh(self) -> list[Name] | None:
        """The names, unless they are too old."""
        try:
            age = time.time() - os.stat(self._path).st_mtime
        except OSError:
            return None
        return self.known() if 0 <= age < FRESH_SECONDS else None

    def known(self) -> list[Name]:
        """The names, however old."""
        try:
            with open(self._path, encoding="utf-8", errors="replace") as file:
                lines = [line.rstrip("\n").partition("\t") for line in file]
        except OSError:
            return []
        return [Name(word, about) for word, _, about in lines if harmless(word)]

    def keep(self, names: list[Name], *, again_soon: bool) -> None:
        """Write them down; with `again_soon` so that the bank is asked again before long."""
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            fresh = f"{self._path}.{os.getpid()}"
            with open(fresh, "w", encoding="utf-8", errors="replace") as file:
                file.writelines(f"{word}\t{plain(about)}\n" for word, about in names)
            if again_soon:
                then = time.time() - FRESH_SECONDS + AGAIN_SECONDS
                os.utime(fresh, (then, then))
            os.replace(fresh, self._path)
        except OSError:
            pass
