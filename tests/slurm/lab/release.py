"""Root of another Debian release, made once: its Slurm, MUNGE, MariaDB, launchers of MPI, compiler
and Python, unused.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.lab.packages import LAUNCHERS, PACKAGES, Unobtainable

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "slurm"
BUILDING = (
    "gcc",
    "libc6-dev",
    "make",
    "dpkg-dev",
    "ca-certificates",
    "python3",
    "python3-venv",
    "git",
    "iproute2",
    # for a Slurm that is built from source
    "libmunge-dev",
    "libmariadb-dev",
    "liblua5.4-dev",
    "libjson-c-dev",
    "pkg-config",
)
NAME = re.compile(
    r"[a-z]+"
)  # name of a release, such as trixie or sid: part of a path and of a line for apt
MAKER = "mmdebstrap"
# a mirror may be out of date; its signatures are still checked
UNDATED = 'Acquire::Check-Valid-Until "false"'


@dataclass(frozen=True)
class Release:
    """Release by name, and its directories: its root, and its part of the checkout."""

    name: str

    @property
    def root(self) -> Path:
        return CACHE / self.name / "root"

    @property
    def venv(self) -> Path:
        """Directory in place of the checkout's .venv, which has the host's Python."""
        return CACHE / self.name / "venv"

    @property
    def cache(self) -> Path:
        """Directory in place of the checkout's .cache, which has plug-ins and sources of the host's
        Slurm.
        """
        return CACHE / self.name / "cache"


def found(name: str) -> Release:
    """Return the release if its root exists. Raises Unobtainable."""
    release = _named(name)
    if not release.root.exists():
        raise Unobtainable(
            f"there is no root of Debian {name} here; `python -m tests.slurm.lab install {name}`"
            " makes one"
        )
    return release


def made(name: str) -> Release:
    """Return the release with its directories, made now if they do not exist. Raises
    Unobtainable.
    """
    release = _named(name)
    for folder in (release.venv, release.cache):
        folder.mkdir(parents=True, exist_ok=True)
    if not release.root.exists():
        _make(release)
    return release


def _named(name: str) -> Release:
    if not NAME.fullmatch(name):
        raise Unobtainable(f"{name!r} is not a release of Debian; say RELEASE=trixie")
    if os.geteuid() != 0:
        raise Unobtainable(
            f"only root can make and enter a root of Debian {name}; run this as root"
        )
    return Release(name)


def _make(release: Release) -> None:
    """Make the root in a directory that is renamed only when it is complete."""
    if not shutil.which(MAKER):
        raise Unobtainable(
            f"{MAKER} is not installed, which makes a root of Debian {release.name}; apt-get"
            f" install {MAKER}"
        )
    unfinished = release.root.with_name("unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = [
        "--quiet",
        "--variant=minbase",
        f"--aptopt={UNDATED}",
        f"--include={','.join([*PACKAGES, *LAUNCHERS, *BUILDING])}",
    ]
    command = [
        MAKER,
        *options,
        release.name,
        str(unfinished),
        *(f"{kind} {mirror()} {release.name} main" for kind in ("deb", "deb-src")),
    ]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise Unobtainable(f"no root of Debian {release.name}: {process.stderr.strip()[-500:]}")
    unfinished.rename(release.root)


def mirror() -> str:
    """Return the mirror of Debian that this host's apt uses. Raises Unobtainable."""
    command = [
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Label: Debian",
    ]
    with_apt = shutil.which("apt-get") is not None
    words = (
        subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        if with_apt
        else []
    )
    for word in words:
        if word.startswith(("http://", "https://")):
            return word.rstrip("/")
    raise Unobtainable(
        "this host's apt knows no mirror of Debian, from which a root could be made: see"
        " /etc/apt/sources.list.d"
    )
