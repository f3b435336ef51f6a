"""Where the commands find the bank: flags, then the environment, then the user's file, then the site's, then the usual places."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.rest.client import Address, MungeSigner, Signer, TokenSigner, parse_address
from fairbank.rest.client.token_file import read_token

SITE_FILE = "/etc/fairbank/client.toml"
SITE_SOCKET = "/run/fairbank/fairbank.sock"
KEYS = {
    "server": "where the bank listens: unix:/run/fairbank/fairbank.sock, http://host:port or https://host",
    "server_name": "the bank's own name, which a MUNGE credential is made for (default: fairbank)",
    "token_file": "a file with a token, to sign in over the network; nobody else may be able to read it",
    "munge_socket": "where munged listens, when it is not in its usual place",
    "libmunge": "the MUNGE library, when it is not in its usual place",
    "cluster": "the usual cluster (-M)",
    "account": "the usual project of fairbank quote (-A)",
}
"""What a client file may say; in the environment the same in capitals, after FAIRBANK_."""

ENVIRONMENT = {
    "FAIRBANK_FORMAT_BALANCE": "the usual columns of fairbank balance, as for -o; the same for every command that shows a table",
    "FAIRBANK_CONFIG": "the bank's own settings, for the commands on its host",
    "FAIRBANK_DEBUG": "1: a bug is told with its trace",
    "SBATCH_ACCOUNT, SLURM_ACCOUNT": "who pays, for fairbank quote, before account above",
    "SLURM_CLUSTER_NAME": "where, for fairbank quote, before cluster above",
    "XDG_CACHE_HOME": "where names for completion are kept for some minutes, under fairbank/ (default: ~/.cache)",
    "PAGER": "what long tables are shown with on a terminal (default: less; empty or cat: nothing)",
    "TERM": "dumb: no pages",
    "NO_COLOR": "anything: no colours",
    "COLUMNS": "how wide tables may be, instead of the terminal's width",
    "TZ": "the time zone in which times are shown and read",
}
"""What else the commands read in the environment."""


class Settings(NamedTuple):
    """`server_name` is the bank's own name, which a MUNGE credential is made for; `munge_socket` and `libmunge` are where MUNGE is
    when it is not in its usual place. `cluster` and `account` are the usual ones. `told`: somebody says where the bank is."""

    server: str
    server_name: str = "fairbank"
    token_file: str | None = None
    munge_socket: str | None = None
    libmunge: str | None = None
    cluster: str | None = None
    account: str | None = None
    told: bool = True

    @property
    def configured(self) -> bool:
        """Whether there is a bank to be asked: somebody says where, or its usual socket is there."""
        return self.told or (self.address.scheme == "unix" and os.path.exists(self.address.place))

    @property
    def address(self) -> Address:
        return parse_address(self.server)

    def signer(self) -> Signer:
        """Nothing on a Unix socket; a token where there is a file with one; else MUNGE."""
        if self.address.scheme == "unix":
            return Signer()
        if self.token_file:
            return TokenSigner(read_token(self.token_file))
        return MungeSigner(self.server_name, socket=self.munge_socket, library=self.libmunge)


def read_client_settings(flags: Mapping[str, str | None], environ: Mapping[str, str]) -> Settings:
    """Each key from the first place that says it. Raises InvalidInput, naming file and key."""
    layers = [
        {key: value for key, value in flags.items() if value},
        {
            key: environ[f"FAIRBANK_{key.upper()}"]
            for key in KEYS
            if environ.get(f"FAIRBANK_{key.upper()}")
        },
        _file(_user_file(environ)),
        _file(SITE_FILE),
    ]
    said: dict[str, str] = {}
    for layer in reversed(layers):
        said |= layer
    return Settings(**{"server": f"unix:{usual_socket(environ)}", **said}, told="server" in said)


def usual_socket(environ: Mapping[str, str]) -> str:
    """That of one's own bank where it runs, or where no site's does; else the site's. Importing pathlib would cost 9 ms of CPU."""
    folder = os.path.join(
        environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "fairbank"
    )
    own = f"{folder}/fairbank.sock"
    mine = os.path.exists(own) or (
        not os.path.exists(SITE_SOCKET) and os.path.exists(f"{folder}/fairbank.toml")
    )
    return own if mine else SITE_SOCKET


def _user_file(environ: Mapping[str, str]) -> str:
    return os.path.join(
        environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "fairbank", "client.toml"
    )


def _file(path: str) -> dict[str, str]:
    try:
        with open(path, "rb") as file:
            text = file.read(65_536)
    except OSError:
        return {}
    import tomllib  # 13 ms that only those with a file pay

    try:
        said: dict[str, Any] = tomllib.loads(text.decode())
    except ValueError as bad:
        raise InvalidInput(
            f"{path} is not TOML: {bad}", field="client settings", remedy="mend the line named"
        ) from bad
    for key, value in said.items():
        if key not in KEYS or not isinstance(value, str):
            keys = ", ".join(sorted(KEYS))
            raise InvalidInput(
                f"{path}: {key!r} is not a setting, or not a text",
                field=key,
                remedy=f'a line is KEY = "TEXT"; keys: {keys}',
            )
    return said
