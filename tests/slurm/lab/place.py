"""Location of a cluster of the lab: one directory and one block of ports, shared with no other
cluster and no Slurm of the host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BASE = Path(
    "/var/lib/fairbank-slurm-lab"
)  # owned by root, so that no other user can write there; short enough for sockets
MARK = "SLURM_LAB"  # environment variable that identifies a cluster's processes
FIRST_PORT, BLOCK, BLOCKS = 17_000, 40, 50  # below the ephemeral ports
FIRST_NODE = 4


@dataclass(frozen=True)
class Place:
    """Directory and ports of one cluster, and the host names that it uses."""

    folder: Path
    first_port: int
    host: str
    address: str

    @property
    def conf(self) -> Path:
        """Return the directory of slurm.conf and of files beside it, such as job_submit.lua."""
        return self.folder / "conf"

    @property
    def slurm_conf(self) -> Path:
        return self.conf / "slurm.conf"

    @property
    def munge(self) -> Path:
        return self.folder / "munge"

    @property
    def mariadb(self) -> Path:
        return self.folder / "mariadb"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def pids(self) -> Path:
        return self.folder / "pids"

    @property
    def programs(self) -> Path:
        """Return the directory of links to daemons under their original names: slurmctld crashes
        under the name slurmctld-wlm.
        """
        return self.folder / "bin"

    @property
    def plugins(self) -> Path:
        """Return the directory in which Slurm looks for further plug-ins, after its own."""
        return self.folder / "plugins"

    @property
    def gpus(self) -> Path:
        """Return the directory of devices that represent GPUs."""
        return self.folder / "gpus"

    @property
    def controller_port(self) -> int:
        return self.first_port

    @property
    def database_port(self) -> int:
        return self.first_port + 1

    def home(self, user: str) -> Path:
        return self.folder / "home" / user

    def node_port(self, number: int) -> int:
        """Return the port of the slurmd with this number, counted from 0."""
        return self.first_port + FIRST_NODE + number

    @property
    def ports(self) -> range:
        return range(self.first_port, self.first_port + BLOCK)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of every daemon and command of this cluster, and of no other
        process: its last line marks them.
        """
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "SLURM_CONF": str(self.slurm_conf),
            MARK: str(self.folder),
        }


def blocks(taken: Iterable[int]) -> list[int]:
    """Yield the first ports of the blocks that no cluster has taken."""
    used = set(taken)
    return [
        port for port in range(FIRST_PORT, FIRST_PORT + BLOCK * BLOCKS, BLOCK) if port not in used
    ]
