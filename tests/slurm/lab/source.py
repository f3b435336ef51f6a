"""Slurm of a source tree: built in the root of a Debian release, and kept by its version."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.slurm.lab import isolation
from tests.slurm.lab.packages import Unobtainable
from tests.slurm.lab.release import Release

VERSION = re.compile(r"^ *Version:\s*(\S+)$", re.MULTILINE)
LOG = "build.log"
# Without optimisation the build takes half of the time. The options leave out what no test uses.
OPTIONS = (
    "--quiet",
    "--prefix=/usr/local",
    "--enable-multiple-slurmd",
    "--disable-debug",
    "--disable-static",
    "--disable-dependency-tracking",
    "--disable-x11",
    "--disable-sview",
    "--disable-slurmrestd",
    "--without-pmix",
    "CFLAGS='-O0 -g0'",
)
BUILD = f"""
set -eu
exec >/usr/local/{LOG} 2>&1
mkdir /tmp/build
cd /tmp/build
"$SLURM_SOURCE/configure" {" ".join(OPTIONS)}
make --silent --jobs="$(nproc)" -C src install
"""


@dataclass(frozen=True)
class SlurmSource:
    """Source tree and its version, and the release in whose root it is built and used."""

    tree: Path
    version: str
    release: Release

    @property
    def installed(self) -> Path:
        """Directory in place of the root's /usr/local, whose programs every command finds first."""
        return self.release.root.with_name(f"slurm-{self.version}")

    @property
    def mounts(self) -> Mapping[str, str]:
        """Variables that the isolation reads. plugins/build reads the first one, too."""
        return {"SLURM_SOURCE": str(self.tree), "SLURM_INSTALLED": str(self.installed)}


def read(tree: Path, release: Release) -> SlurmSource:
    """Return the source tree with its version. Raises Unobtainable."""
    tree = tree.resolve()
    if not (tree / "META").is_file() or not (tree / "configure").is_file():
        raise Unobtainable(f"{tree} is not a source of Slurm: META or configure is missing")
    version = VERSION.search((tree / "META").read_text())
    if version is None:
        raise Unobtainable(f"{tree}/META has no version")
    return SlurmSource(tree, version[1], release)


def found(tree: Path, release: Release) -> SlurmSource:
    """Return the source tree if its version is built. Raises Unobtainable."""
    source = read(tree, release)
    if not source.installed.exists():
        raise Unobtainable(
            f"Slurm {source.version} is not built here; `python -m tests.slurm.lab install --source"
            f" {tree} {release.name}` builds it"
        )
    return source


def build(source: SlurmSource) -> None:
    """Build and install this version unless it is here already. Raises Unobtainable."""
    if source.installed.exists():
        return
    unfinished = source.installed.with_name(f"{source.installed.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    mounts = {**source.mounts, "SLURM_INSTALLED": str(unfinished)}
    if isolation.run(source.release, ("sh", "-c", BUILD), mounts):
        log = (unfinished / LOG).read_text(errors="replace")
        raise Unobtainable(f"Slurm {source.version} was not built: {log[-1500:]}")
    unfinished.rename(source.installed)
