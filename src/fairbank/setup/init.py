"""Creation of a bank: settings, secret and an empty store."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from fairbank.core.errors import Conflict, FairbankError, InvalidInput
from fairbank.core.os_errors import FREE_DISK_SPACE, translate_os_error
from fairbank.core.settings_file import toml_string
from fairbank.core.validation import WORD
from fairbank.rest.auth.keyfile import make_private, read_secret
from fairbank.service.settings import read_settings
from fairbank.setup.bank_settings import default_directory
from fairbank.store.migration import migrate
from fairbank.store.urls import SQLITE, parse_url, path_of, redacted_url
from fairbank.unix_users import user_name

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
    name = name or (folder.resolve().name if directory else user_name(os.getuid()))
    text = settings_text(folder.resolve(), url, name, clusters)
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


def settings_text(
    directory: Path, url: str, name: str = "fairbank", clusters: str | None = None
) -> str:
    """Return the settings file that `fairbank init` writes: the required keys, and clusters whose
    agent is the user of this process.

    Args:
        directory: the directory of the secret and of the socket.
        url: the URL of the store.
        name: the bank's name. It is written if it is one word of ASCII, else "fairbank".
        clusters: the tables of the clusters; None: one example cluster.

    Raises:
        InvalidInput: TOML cannot hold the directory or the URL: it must be UTF-8.
    """
    is_word = re.match(WORD, name) is not None
    named = f"name = {toml_string(name)}" if is_word else 'name = "fairbank"'
    return f"""\
# Settings of this Fairbank. The reference page "Settings" explains every key.
secret_file = {_toml_string(f"{directory}/secret", "DIRECTORY")}

[store]
url = {_toml_string(url, "--store")}

[server]
socket = {_toml_string(f"{directory}/fairbank.sock", "DIRECTORY")}
{named}   # in every answer; server_name of clients that use MUNGE

[policy]
enforce = true            # false: refuse no job, only record what would have been refused
overrun = "write_off"     # or "record": usage beyond what is left is charged all the same

{_example_cluster() if clusters is None else clusters}"""


GPU_WEIGHTS = "CPU=0.0625,Mem=0.03125G,GRES/gpu=1.0"
"""Prices of the partition of GPUs in the example."""


def _example_cluster() -> str:
    return f"""\
[clusters.local]
adding = "max_tres"
agents = [{os.getuid()}]

[clusters.local.partitions.cpu]
resource = "cpu"
weights = "CPU=1.0,Mem=0.5G"
# node_cpus = 64          # size of each node, for quotes of --exclusive and --mem=0
# node_memory = "256G"
# def_mem_per_cpu = "2G"  # memory of jobs that request none

[clusters.local.partitions.gpu]
resource = "gpu"
weights = "{GPU_WEIGHTS}"
"""


def _toml_string(value: str, field: str) -> str:
    """Return a text as a TOML string. Raises InvalidInput if it is not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError as bad:
        raise InvalidInput(
            f"{value!a} is not UTF-8", field=field, remedy="give it a name in UTF-8"
        ) from bad
    return toml_string(value)
