"""Client settings: from flags, the environment, the user's file, the site's file, or defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from fairbank.client_file import KEYS, SITE_FILE, read_client_file, user_directory, user_file
from fairbank.core.errors import InvalidInput
from fairbank.core.os_errors import translate_os_error
from fairbank.rest.client import Address, MungeSigner, Signer, TokenSigner, parse_address
from fairbank.rest.client.signers import read_token

SITE_SOCKET = "/run/fairbank/fairbank.sock"
ENVIRONMENT = {
    "FAIRBANK_FORMAT_BALANCE": (
        "default columns of fairbank balance, as for -o; every command with a table has its own"
    ),
    "FAIRBANK_CONFIG": (
        "settings file of a bank on this host, for all commands; FAIRBANK_SERVER names another bank"
        " to ask"
    ),
    "FAIRBANK_DEBUG": "1: show the traceback of a bug",
    "SBATCH_ACCOUNT, SLURM_ACCOUNT": "default project of fairbank quote, before account above",
    "SLURM_CLUSTER_NAME": "default cluster of fairbank quote, before cluster above",
    "XDG_CACHE_HOME": (
        "directory of the names cached for completion, in fairbank/ (default: ~/.cache)"
    ),
    "PAGER": "pager of long tables on a terminal (default: less; empty or cat: none)",
    "TERM": "dumb: no pager",
    "NO_COLOR": "any value: no colours",
    "COLUMNS": "width of tables, instead of the terminal's",
    "TZ": "time zone of input and output",
}
"""Other environment variables of the commands."""


class Settings(NamedTuple):
    """Settings by the keys of KEYS.

    `is_named`: the server is not the default. `bank_file`: the settings of a bank on this host that
    name its address.
    """

    server: str
    server_name: str = "fairbank"
    token_file: str | None = None
    munge_socket: str | None = None
    libmunge: str | None = None
    cluster: str | None = None
    account: str | None = None
    is_named: bool = True
    bank_file: str | None = None

    @property
    def is_configured(self) -> bool:
        """True if there may be a bank: its address is given, or its default socket exists."""
        return self.is_named or (
            self.address.scheme == "unix" and os.path.exists(self.address.place)
        )

    @property
    def address(self) -> Address:
        return parse_address(self.server)

    def signer(self) -> Signer:
        """Return the sign-in: none on a Unix socket, else a token if there is one, else MUNGE."""
        if self.address.scheme == "unix":
            return Signer()
        if self.token_file:
            return TokenSigner(read_token(self.token_file))
        return MungeSigner(self.server_name, socket=self.munge_socket, library=self.libmunge)


def read_client_settings(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Settings:
    """Return each key from the first source that has it. Raises InvalidInput with file and key."""
    environment = {key: environ.get(f"FAIRBANK_{key.upper()}") for key in KEYS}
    values = _without_directory(_set_values(environment)) | _set_values(flags)
    values = _address_in(environ.get("FAIRBANK_CONFIG"), "FAIRBANK_CONFIG", values) | values
    values = _without_directory(read_client_file(user_file(environ))) | values
    # A bank of one's own comes before the host's bank even if it does not run: a command for the
    # one must not reach the other.
    values = _address_in(_own_bank(environ), "server", values) | values
    values = _without_directory(read_client_file(SITE_FILE)) | values
    is_named = "server" in values
    return Settings(**{"server": f"unix:{SITE_SOCKET}", **values}, is_named=is_named)


def _set_values(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value}


def _without_directory(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values without a directory of `fairbank cluster`."""
    is_directory = values.get("cluster", "").startswith("/")
    return {key: text for key, text in values.items() if key != "cluster" or not is_directory}


def _own_bank(environ: Mapping[str, str]) -> str | None:
    """Return the settings of the user's own bank, if there is one.

    Uses os.path, because importing pathlib would cost 9 ms.
    """
    state = user_directory(environ, "XDG_STATE_HOME", "~/.local/state")
    path = f"{state}/fairbank/fairbank.toml"
    return path if state and os.path.exists(path) else None


def _address_in(path: str | None, field: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the address of the bank that has these settings, and their path; nothing if an address
    is known.

    Args:
        path: the path of the settings of a bank; None for none.
        field: the option or variable that names them.
        known: the values found so far.
    """
    if path is None or "server" in known:
        return {}
    from fairbank.core.settings_file import parse_toml, read_whole  # as in read_client_file

    try:
        with open(path, "rb") as file:
            server = parse_toml(read_whole(file, path, field=field), path, field=field)["server"]
        return {"server": f"unix:{server['socket']}", "bank_file": path}
    except OSError as error:
        raise translate_os_error(error, f"cannot read the settings {path}", field=field) from error
    except (KeyError, TypeError) as bad:
        raise InvalidInput(
            f"{path} names no socket, so it is not the settings of a bank",
            field=field,
            remedy="name the file that fairbank init wrote, or the bank with --server",
        ) from bad
