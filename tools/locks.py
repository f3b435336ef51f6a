"""`python -m tools.locks`: check the lock files against pyproject.toml, without network.

`make lock` writes them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

RUNTIME, CLIENT = "requirements.lock", "requirements-client.lock"
DEV, SETUP = "requirements-dev.lock", "requirements-setup.lock"
FOREIGN, FOREIGN_TOOLS = "requirements-foreign.lock", "requirements-foreign.in"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_ENTRY = re.compile(r"^[A-Za-z0-9].*(?:\n    .*)*", re.MULTILINE)

Pins = Mapping[str, list[Version]]


def main() -> int:
    """Print the faults of the lock files in the working directory and return 1, or return 0."""
    here = Path()
    project = tomllib.loads((here / "pyproject.toml").read_text(encoding="utf-8"))
    locks = {
        name: (here / name).read_text(encoding="utf-8")
        for name in (RUNTIME, CLIENT, DEV, SETUP, FOREIGN)
    }
    lines = (here / FOREIGN_TOOLS).read_text(encoding="utf-8").splitlines()
    tools = [line for line in lines if not line.startswith("#")]
    wrong = list(faults(project, locks, tools))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def faults(
    project: Mapping[str, Any], locks: Mapping[str, str], tools: Iterable[str]
) -> Iterator[str]:
    """Yield a sentence for each fault: a stale lock file, a missing hash, a download address.

    Args:
        project: content of pyproject.toml.
        locks: texts of the lock files by name.
        tools: requirements of the tools that tests run in an environment of their own.
    """
    client, groups = project["project"]["dependencies"], project["dependency-groups"]
    extras = project["project"]["optional-dependencies"]
    pins = {name: pins_of(lock) for name, lock in locks.items()}
    yield from _unmet(CLIENT, client, pins[CLIENT])
    yield from _unmet(RUNTIME, [*client, *extras["server"]], pins[RUNTIME])
    # The tests use every extra.
    every = chain.from_iterable(extras.values())
    yield from _unmet(DEV, [*client, *every, *groups["dev"]], pins[DEV])
    yield from _unmet(SETUP, groups["setup"], pins[SETUP])
    yield from _unmet(FOREIGN, tools, pins[FOREIGN])
    for name, versions in pins[CLIENT].items():
        if pins[RUNTIME].get(name) != versions:
            yield f"{CLIENT}: {name} is not the version of {RUNTIME}; run `make lock`"
    for name, versions in pins[RUNTIME].items():
        if pins[DEV].get(name) != versions:
            yield f"{DEV}: {name} is not the version of {RUNTIME}; run `make lock`"
    for lock, text in locks.items():
        if "://" in text:
            yield f"{lock}: contains a download address; run `make lock`"
        yield from (
            f"{lock}: {entry.split()[0]} has no hash"
            for entry in _ENTRY.findall(text)
            if "--hash=sha256:" not in entry
        )


def pins_of(lock: str) -> Pins:
    """Return the versions that a lock file pins; several where they differ by platform."""
    pins: dict[str, list[Version]] = {}
    for name, version in _PIN.findall(lock):
        pins.setdefault(canonicalize_name(name), []).append(Version(version))
    return pins


def _unmet(lock: str, declared: Iterable[str], pins: Pins) -> Iterator[str]:
    for requirement in map(Requirement, declared):
        versions = pins.get(canonicalize_name(requirement.name), [])
        if not versions or not all(version in requirement.specifier for version in versions):
            yield f"{lock}: does not satisfy {requirement}; run `make lock`"


if __name__ == "__main__":
    sys.exit(main())
