"""Client settings in the files of a user and of a site, and the directories of a user."""

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


def user_directory(environ: Mapping[str, str], variable: str, default: str) -> str:
    """Return the directory that a variable names, else the default.

    As the specification demands, a relative path in the variable is ignored. The result is empty
    if the user has no home directory.

    Args:
        environ: the environment.
        variable: its name, such as XDG_CACHE_HOME.
        default: a path in the home directory, such as ~/.cache.
    """
    own = os.path.expanduser(default)
    paths = (environ.get(variable, ""), own)
    return next((path for path in paths if path.startswith("/")), "")


def state_directory(environ: Mapping[str, str]) -> str:
    """Return the directory for the state of a user's programs.

    Raises InvalidInput if the user has no home directory.
    """
    if path := user_directory(environ, "XDG_STATE_HOME", "~/.local/state"):
        return path
    raise InvalidInput(
        "you have no home directory",
        field="XDG_STATE_HOME",
        remedy="name a directory of yours in it, such as XDG_STATE_HOME=/var/tmp/$(id -u)",
    )


def user_file(environ: Mapping[str, str]) -> str:
    """Return the path of the user's file; empty for a user without a home directory."""
    config = user_directory(environ, "XDG_CONFIG_HOME", "~/.config")
    return config and f"{config}/fairbank/client.toml"


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
