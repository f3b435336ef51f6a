"""Environment of a job: which variables of the submitter it gets (--export, --get-user-env)."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterable, Iterator, Mapping

_OWN = (b"SLURM_", b"SPANK_")
_TOKEN = re.compile(r"""(?:[^,'"]|'[^']*'|"[^"]*")+""")
_QUOTED = re.compile(r"""(['"])(.*)\1""", re.DOTALL)
_LOGIN_SECONDS = 30
_LOGIN_PATH = "/usr/local/bin:/usr/bin:/bin"


def job_environment(
    own: Mapping[bytes, bytes], export: str | None, *, from_login: bool
) -> list[bytes]:
    """Return the variables of a job as NAME=value.

    Args:
        own: the environment of the submitter.
        export: value of --export: ALL (the default), NONE, NIL, or names with or without values.
            SLURM_* are always exported.
        from_login: whether those of a login shell come first (--get-user-env). NONE and a list of
            names imply it.
    """
    tokens = _TOKEN.findall(export or "ALL")
    variables: dict[bytes, bytes] = {}
    if from_login or not {"ALL", "NIL"}.intersection(token.upper() for token in tokens):
        variables = {**login_environment(), b"SLURM_GET_USER_ENV": b"1"}
    variables |= {name: own[name] for name in own if name.startswith(_OWN)}
    variables |= dict(_listed(tokens, own))
    variables[b"SLURM_PRIO_PROCESS"] = b"%d" % os.getpriority(os.PRIO_PROCESS, 0)
    if export is not None:
        variables[b"SLURM_EXPORT_ENV"] = os.fsencode(export)
    return [name + b"=" + value for name, value in variables.items()]


def _listed(tokens: Iterable[str], own: Mapping[bytes, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the variables of a list such as `ALL`, `EDITOR` and `ARG='a,b'`."""
    for token in tokens:
        name, has_value, value = _unquoted(token).partition("=")
        if has_value:
            yield os.fsencode(name), os.fsencode(_unquoted(value))
        elif name.upper() == "ALL":
            yield from own.items()
        elif name.upper() not in ("NIL", "NONE") and (key := os.fsencode(name)) in own:
            yield key, own[key]


def _unquoted(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    return quoted[2] if quoted else text


def login_environment() -> dict[bytes, bytes]:
    """Return the environment of a login shell of the user; nothing if it cannot be started."""
    from subprocess import DEVNULL, SubprocessError, run  # a slow import

    try:
        user = pwd.getpwuid(os.geteuid())
    except KeyError:
        return {}
    clean = {
        "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name,
        "SHELL": user.pw_shell, "PATH": _LOGIN_PATH,
    }  # fmt: skip
    try:
        shell = run(
            [user.pw_shell or "/bin/sh", "-l", "-c", "env -0"],
            env=clean,
            stdin=DEVNULL,
            capture_output=True,
            timeout=_LOGIN_SECONDS,
            check=False,
        )
    except (OSError, SubprocessError):
        return {}
    entries = (entry.partition(b"=") for entry in shell.stdout.split(b"\0"))
    return {name: value for name, equals, value in entries if equals and name != b"_"}
