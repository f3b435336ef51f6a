"""Client settings in the files of a user and of a site."""

from __future__ import annotations

import os
from collections.abc import Mapping

from fairbank.core.errors import InvalidInput

SITE_FILE = "/etc/fairbank/client.toml"
KEYS = {
    "server": (
        "address of the bank: unix:/run/fairbank/fairbank.sock, http://host:port or https://host"
    ),
    "server_name": "name of the bank in MUNGE credentials (default: fairbank)",
    "token_file": "file with a token, to authenticate over the network; readable by its owner only",
    "munge_socket": "socket of munged, if not the default",
    "libmunge": "MUNGE library, if not the default",
    "cluster": (
        "default cluster (-M) of commands that need one; lists have all clusters. An absolute path"
        " is the directory of fairbank cluster instead"
    ),
    "account": "default project of fairbank quote (-A)",
}
"""Keys of a client file. In the environment they are in capitals, after FAIRBANK_."""


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's file."""
    config = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return f"{config}/fairbank/client.toml"


def read_client_file(path: str) -> dict[str, str]:
    """Return the settings in a file; none if there is no file that this user may read.

    Raises InvalidInput with file and key.
    """
    if not (os.path.isfile(path) and os.access(path, os.R_OK)):
        return {}
    from fairbank.core.settings_file import parse_toml, read_whole  # 13 ms, only if there is a file

    with open(path, "rb") as file:
        values = parse_toml(read_whole(file, path, field=path), path, field=path)
    for key, value in values.items():
        if key not in KEYS or not isinstance(value, str):
            keys = ", ".join(sorted(KEYS))
            raise InvalidInput(
                f"{path}: {key!r} is not a setting, or its value is not text",
                field=key,
                remedy=f'a line is KEY = "TEXT"; keys: {keys}',
            )
    return values
