"""Creation of a bank: settings, secret and an empty store."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import getpwuid
from urllib.parse import quote

from fairbank.core.errors import Conflict, FairbankError, InvalidInput
from fairbank.core.os_errors import FREE_DISK_SPACE, translate_os_error
from fairbank.rest.auth.keyfile import make_private, read_secret
from fairbank.service.settings import example, read_settings
from fairbank.setup.bank_settings import default_directory
from fairbank.store.migration import migrate
from fairbank.store.urls import SQLITE, parse_url, path_of, redacted_url

SETTINGS = "fairbank.toml"


def init(
    directory: str | None, store: str | None, name: str | None = None, clusters: str | None = None
) -> list[str]:
    """Create settings, secret and an empty store in a directory.

    If there are settings, migrate an older store and replace a missing secret. Returns what was
    done, in sentences. Raises Conflict if nothing is missing.

    Args:
        directory: None for that of the user's own bank.
        store: URL of the store; None for an SQLite file in the directory.
        name: the bank's name; default: that of the directory, or of the user for their own bank.
        clusters: tables of its clusters in the settings; None: an example.
    """
    if directory == "":  # a shell variable that is not set
        raise InvalidInput(
            "the directory is empty",
            field="DIRECTORY",
            remedy="name a directory, or leave it out for a bank of your own",
        )
    folder = default_directory() if directory is None else Path(directory)
    try:
        new = not folder.exists()
        _make_directory(folder)
    except OSError as bad:
        raise translate_os_error(
            bad, f"cannot make the directory {folder}", field="DIRECTORY"
        ) from bad
    settings = folder / SETTINGS
    if settings.exists():
        return _complete_bank(settings, store)
    url = store or f"sqlite:///{quote(str(folder.resolve()))}/fairbank.sqlite"
    name = name or (folder.resolve().name if directory else _user_name())
    text = example(folder.resolve(), url, name, clusters)
    with _nothing_left_behind(_files(folder, url), folder, new=new):
        migrate(url)
        read_secret(folder / "secret", create=True)
        _write(settings, text)
    return [f"made {part}" for part in (settings, folder / "secret", redacted_url(url))]


def _complete_bank(settings: Path, store: str | None) -> list[str]:
    """Migrate the store of an existing bank, and replace a missing secret. See `init`."""
    existing = read_settings(settings)
    if store is not None and store != existing.store.url:
        raise Conflict(
            f"{settings} names another store: {redacted_url(existing.store.url)}",
            field="--store",
            remedy="name another DIRECTORY",
        )
    done = []
    if migrate(existing.store.url, journal=existing.store.journal):
        done.append(f"migrated {redacted_url(existing.store.url)}")
    secret = Path(existing.secret_file)
    if not secret.exists():
        read_secret(secret, create=True)
        done += [
            f"made {secret}",
            "Tokens created before are not valid any more. Create them again with: fairbank"
            " token create",
        ]
    if not done:
        remedy = f"run it with: fairbank serve --config {shlex.quote(str(settings))}"
        raise Conflict(
            f"there is a bank in {settings.parent} already: settings, secret, store of the current"
            " schema",
            field="DIRECTORY",
            remedy=remedy,
        )
    return done


def _user_name() -> str:
    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _make_directory(folder: Path) -> None:
    """Create a directory and those above it. Others can enter it whatever the umask: it holds the
    public socket, and its other files are private.
    """
    if not folder.is_dir():
        _make_directory(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _write(settings: Path, text: str) -> None:
    try:
        make_private(settings, text)  # a database's URL may hold a password
    except OSError as bad:
        raise translate_os_error(bad, f"cannot make {settings}", field="DIRECTORY") from bad


@contextmanager
def _nothing_left_behind(files: Sequence[Path], folder: Path, *, new: bool) -> Iterator[None]:
    """Delete what was created, and a new directory, if the disk is full."""
    made = [file for file in files if not file.exists()]
    try:
        yield
    except FairbankError as full:
        if not full.is_disk_full:
            raise
        # If there are settings, another process created a bank here: these are its files.
        if not (folder / SETTINGS).exists():
            for file in made:
                file.unlink(missing_ok=True)
            if new:
                with suppress(OSError):  # there may be more in it by now
                    folder.rmdir()
        raise FairbankError(
            f"cannot make a bank in {folder}: the disk is full",
            field="DIRECTORY",
            remedy=FREE_DISK_SPACE,
        ) from full


def _files(folder: Path, url: str) -> list[Path]:
    """Return the files made before the settings: the secret, and SQLite's files."""
    where = parse_url(url)
    stores = [path_of(where)] if where.drivername == SQLITE else []
    return [
        folder / "secret",
        *(
            store.with_name(store.name + end)
            for store in stores
            for end in ("", "-journal", "-wal", "-shm")
        ),
    ]
