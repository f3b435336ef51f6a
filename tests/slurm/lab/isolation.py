"""Isolation of a command in the root of another release, as on a separate machine. Mounts,
processes, names and network are separate, so that nothing it starts, writes or binds belongs to the
host. The root is under a layer in memory: each command starts from the same root, and its processes
and files are removed at the end. The checkout is the host's, with a .venv and a .cache of the
release.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.slurm.lab.packages import Unobtainable
from tests.slurm.lab.release import Release

CHECKOUT = Path(__file__).resolve().parents[3]
HOST = "head"  # host name of the isolated command
# An unused address on loopback: glibc offers no address to listen on if only 127.0.0.1 exists.
ADDRESS = "192.0.2.1/32"
KEPT_VARIABLES = (
    "FAIRBANK_",
    "WRITE_GOLDEN",
    "TERM",
)  # prefixes of the variables that the isolated command inherits
DOWNLOAD_VARIABLES = ("PIP_", "UV_", "SSL_", "http_proxy", "https_proxy", "no_proxy")
NETWORK_FILES = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/ssl/certs",
)  # name resolution and certificates of the host

NAMESPACES = ("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child")
# $1: the checkout; then the command. The working directory is the release's.
ENTER = f"""
set -eu
checkout=$1 room=scratch/room
shift
mkdir -p scratch
mount -t tmpfs -o mode=755 scratch scratch
mkdir scratch/upper scratch/work "$room"
mount -t overlay -o lowerdir=root,upperdir=scratch/upper,workdir=scratch/work overlay "$room"
mount -t proc proc "$room/proc"
mount --bind /dev "$room/dev"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$room/dev/pts"
mount -t tmpfs -o mode=1777 shm "$room/dev/shm"
mount -t tmpfs -o mode=755 run "$room/run"
mkdir -p "$room$checkout"
mount --bind "$checkout" "$room$checkout"
mount --bind venv "$room$checkout/.venv"
mount --bind cache "$room$checkout/.cache"
if [ "${{SLURM_SOURCE:-}}" ]; then
    mkdir -p "$room$SLURM_SOURCE"
    mount --bind -o ro "$SLURM_SOURCE" "$room$SLURM_SOURCE"
    mount --bind "$SLURM_INSTALLED" "$room/usr/local"
fi
hostname {HOST}
echo '127.0.0.1 localhost {HOST}' >"$room/etc/hosts"
if [ "$FETCHING" ]; then
    for each in {" ".join(NETWORK_FILES)}; do mount --bind "$each" "$room$each"; done
else
    mount -t sysfs -o ro sysfs "$room/sys"
    chroot "$room" ip link set lo up
    chroot "$room" ip address add {ADDRESS} dev lo
fi
exec chroot "$room" sh -c 'cd "$0" && "$@"; exit $?' "$checkout" "$@"
"""


def furnish(release: Release) -> None:
    """Fetch what the tests need: Python packages, and the source of this release's Slurm for the
    plug-ins. Raises Unobtainable.
    """
    _try(release)
    (CHECKOUT / ".venv").mkdir(exist_ok=True)
    if _enter(release, ("make", ".venv/.dev"), fetching=True):
        raise Unobtainable(
            f"the Python of Debian {release.name} did not get its packages, see above"
        )
    _enter(
        release, ("make", "plugins"), fetching=True
    )  # tests that need the plug-ins report a failed build themselves


def run(release: Release, command: Sequence[str], mounts: Mapping[str, str] | None = None) -> int:
    """Run the command in the checkout, with only a loopback network, and return its exit code.
    `mounts` are those of a Slurm that was built from source.
    """
    return _enter(release, command, fetching=False, mounts=mounts)


def _enter(
    release: Release,
    command: Sequence[str],
    *,
    fetching: bool,
    mounts: Mapping[str, str] | None = None,
) -> int:
    return subprocess.run(
        _command(command, fetching),
        cwd=release.root.parent,
        env={**_environment(fetching), **(mounts or {})},
        check=False,
    ).returncode


def _try(release: Release) -> None:
    """Raise Unobtainable if root may not do this, as in most containers."""
    directory, environment = release.root.parent, _environment(False)
    process = subprocess.run(
        _command(("true",), False),
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise Unobtainable(
            f"root cannot enter the root of Debian {release.name} here:"
            f" {process.stderr.strip()[-500:]}"
        )


def _command(command: Sequence[str], fetching: bool) -> list[str]:
    return [
        *NAMESPACES,
        *([] if fetching else ["--net"]),
        "sh",
        "-c",
        ENTER,
        "sh",
        str(CHECKOUT),
        *command,
    ]


def _environment(fetching: bool) -> Mapping[str, str]:
    prefixes = KEPT_VARIABLES + DOWNLOAD_VARIABLES if fetching else KEPT_VARIABLES
    own = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    inherited = {name: value for name, value in os.environ.items() if name.startswith(prefixes)}
    return own | inherited | {"FETCHING": "yes" if fetching else ""}
