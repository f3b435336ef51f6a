"""Debian packages that the lab needs: which are missing, and their installation without starting a
daemon.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# A program of each package. MariaDB's core has the programs, but no user, data directory or
# service.
PACKAGES = {
    "munge": "/usr/sbin/munged",
    "mariadb-server-core": "/usr/sbin/mariadbd",
    "mariadb-client-core": "/usr/bin/my_print_defaults",  # needed by mariadb-install-db
    "slurm-client": "/usr/bin/sbatch",
    "slurmdbd": "/usr/sbin/slurmdbd",
    "slurmctld": "/usr/sbin/slurmctld-wlm",
    "slurmd": "/usr/sbin/slurmd-wlm",
}
BESIDE = {"task-spooler": "/usr/bin/tsp"}
"""Packages that no test needs: `make bench` measures beside them where they are installed."""
LAUNCHERS = {"openmpi-bin": "/usr/bin/mpirun.openmpi", "mpich": "/usr/bin/mpirun.mpich"}
"""Packages with launchers of MPI. Only their tests need them."""
BUILT = Path("/usr/local")
"""Where a Slurm built from source is. Commands find its programs first, so the lab does, too."""

SERVICES = ("munge", "slurmdbd", "slurmctld", "slurmd")  # packages with a service of the same name

POLICY = Path(
    "/usr/sbin/policy-rc.d"
)  # every package runs it before it starts a service; exit status 101 forbids the start
SET_ASIDE = POLICY.with_name("policy-rc.d.set-aside-by-fairbank")
MARK = "# Put here by Fairbank's tests while they install packages; may be removed."
FORBIDDEN = 101


class Unobtainable(Exception):
    """This machine cannot have a lab; the message has the reason and the remedy."""


def missing(programs: Mapping[str, str] = PACKAGES) -> tuple[str, ...]:
    """Return the packages that are not installed."""
    return tuple(package for package, program in programs.items() if not Path(program).exists())


def slurm_daemon(name: str) -> str:
    """Return the program of a daemon of Slurm."""
    built = BUILT / "sbin" / name
    return str(built) if built.exists() else PACKAGES[name]


def slurm_plugins() -> Path:
    """Return the directory of the plug-ins that belong to these daemons."""
    if slurm_daemon("slurmctld") == PACKAGES["slurmctld"]:
        return Path(f"/usr/lib/{platform.machine()}-linux-gnu/slurm-wlm")
    return BUILT / "lib" / "slurm"


def slurm_release() -> tuple[int, int]:
    """Return year and month of the installed Slurm, as in 22.05."""
    output = subprocess.run(
        [slurm_daemon("slurmctld"), "-V"], capture_output=True, text=True, check=True
    ).stdout
    return release_of(output.split()[1])


def release_of(version: str) -> tuple[int, int]:
    """Return the release of a version such as `22.05.8`."""
    year, month, *_ = version.split(".")
    return int(year), int(month)


def check() -> None:
    """Raise Unobtainable if a cluster cannot be started here."""
    if os.geteuid() != 0:
        raise Unobtainable(
            "only root can start daemons and commands as several users; run `make test-slurm` as"
            " root"
        )
    if lacking := missing():
        raise Unobtainable(
            f"{', '.join(lacking)} not installed; `make test-slurm` installs what is missing, on"
            " Debian, as root"
        )


def install() -> tuple[str, ...]:
    """Install the missing packages and return their names; no service starts, now or at the next
    boot. Raises Unobtainable.
    """
    packages = missing(PACKAGES | BESIDE | LAUNCHERS)
    if not packages:
        return ()
    if os.geteuid() != 0:
        raise Unobtainable(f"only root can install {', '.join(packages)}; run this as root")
    if not shutil.which("apt-get"):
        raise Unobtainable(
            f"{', '.join(packages)} not installed, and this is no Debian to fetch them from; use a"
            " Debian machine or container"
        )
    with no_service_starts():
        _apt("update")
        _apt("install", "--no-install-recommends", *packages)
        _disable(service for service in SERVICES if service in packages)
    return packages


@contextmanager
def no_service_starts() -> Iterator[None]:
    """Install packages in this block without starting a service. Afterwards the host's own policy
    is restored.
    """
    if POLICY.exists() and MARK not in POLICY.read_text():
        POLICY.rename(SET_ASIDE)
    POLICY.write_text(f"#!/bin/sh\n{MARK}\nexit {FORBIDDEN}\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        if SET_ASIDE.exists():  # also after an installation that was killed
            SET_ASIDE.rename(POLICY)
        else:
            POLICY.unlink()


def _disable(services: Iterator[str]) -> None:
    if Path("/run/systemd/system").is_dir():
        for service in services:
            subprocess.run(["systemctl", "disable", "--quiet", service], check=False)


def _apt(*arguments: str) -> None:
    command = ["apt-get", "--yes", "--quiet", *arguments]
    process = subprocess.run(
        command,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise Unobtainable(f"`{' '.join(command)}` failed: {process.stderr.strip()[-500:]}")
