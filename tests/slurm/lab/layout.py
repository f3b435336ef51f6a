"""Directory of a cluster, made with its owners and permissions before the first daemon starts."""

from __future__ import annotations

import json
import os
import pwd
import secrets
import shutil
import stat
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.slurm.lab.configuration import (
    DATABASE,
    cgroup_conf,
    gres_conf,
    slurm_conf,
    slurmdbd_conf,
)
from tests.slurm.lab.daemons import SLURMCTLD, all_daemons, scratch
from tests.slurm.lab.machine import NodeGroup
from tests.slurm.lab.packages import slurm_daemon, slurm_release
from tests.slurm.lab.people import PEOPLE
from tests.slurm.lab.place import Place

RECORD = "cluster.json"
NEEDS_CGROUP_CONF = (23, 11)  # 22.05 starts without one


def record(place: Place, size: str) -> str:
    """Return the values that another process needs to find the cluster: ports, host names,
    machine.
    """
    return (
        json.dumps(
            {
                "first_port": place.first_port,
                "host": place.host,
                "address": place.address,
                "machine": size,
            }
        )
        + "\n"
    )


def read_record(folder: Path) -> tuple[Place, str]:
    """Return the place and the size of the cluster in the directory."""
    values = json.loads((folder / RECORD).read_text())
    return Place(folder, values["first_port"], values["host"], values["address"]), values["machine"]


def furnish(place: Place, machine: Sequence[NodeGroup]) -> None:
    """Create everything that the daemons need, with a new MUNGE key and an empty database."""
    _folders(place)
    _programs(place)
    for number in range(max((group.gpus for group in machine), default=0)):
        # Of a device, as of null here, Slurm sets the variables of the job; of a file it does not.
        os.mknod(place.gpus / str(number), stat.S_IFCHR | 0o666, os.makedev(1, 3))
    for person in PEOPLE:
        place.home(person.name).mkdir(mode=0o700, parents=True)
        shutil.chown(place.home(person.name), person.name, "users")
    _secret(place.munge / "key", secrets.token_bytes(128), "munge")
    _secret(place.conf / "slurmdbd.conf", slurmdbd_conf(place).encode(), "slurm")
    for daemon in all_daemons(place, machine):
        log = place.logs / f"{daemon.name}.output"
        log.touch()
        shutil.chown(log, daemon.user)
    _database(place)


def configure(place: Place, machine: Sequence[NodeGroup], changes: Mapping[str, str]) -> None:
    """Write slurm.conf and the files beside it, readable for everybody."""
    texts = {
        "slurm.conf": slurm_conf(place, machine, changes),
        "gres.conf": gres_conf(place, machine),
    }
    if (release := slurm_release()) >= NEEDS_CGROUP_CONF:
        texts["cgroup.conf"] = cgroup_conf(release)
    for name, text in texts.items():
        (place.conf / name).write_text(text)
        (place.conf / name).chmod(0o644)


def set_first_job(place: Place, number: int) -> None:
    """Let slurmctld give no number below this one."""
    path, setting = place.conf / "slurm.conf", "FirstJobId="
    kept = [line for line in path.read_text().splitlines() if not line.startswith(setting)]
    path.write_text("\n".join([*kept, f"{setting}{number}", ""]))


def _folders(place: Place) -> None:
    for folder in (
        place.conf,
        place.pids,
        place.programs,
        place.plugins,
        place.gpus,
        place.spool,
        place.folder / "home",
    ):
        folder.mkdir()
        folder.chmod(0o755)  # whatever the umask is
    for folder, owner, mode in (
        (place.munge, "munge", 0o711),  # clients of any user can connect, but not list it
        (place.mariadb, "slurm", 0o700),
        (place.state, "slurm", 0o700),
        (place.logs, "slurm", 0o755),
    ):
        folder.mkdir()
        folder.chmod(mode)
        shutil.chown(folder, owner, owner)


def _programs(place: Place) -> None:
    for name in (SLURMCTLD, "slurmd"):
        (place.programs / name).symlink_to(slurm_daemon(name))


def _secret(path: Path, content: bytes, owner: str) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
    shutil.chown(path, owner, owner)


def _database(place: Place) -> None:
    """Create the system tables with one account, slurm by its socket, and slurmdbd's database."""
    user = pwd.getpwnam("slurm")
    process = subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={place.mariadb}/data",
            "--auth-root-authentication-method=socket",
            "--auth-root-socket-user=slurm",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=32M",
        ],
        cwd=place.mariadb,
        env=place.environment | scratch(place),
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(
            f"mariadb-install-db failed:\n{process.stdout[-1500:]}{process.stderr[-1500:]}"
        )
    # A directory is a database without tables. With libmariadb3 11.8.9 each query of a slurmdbd
    # that creates it ends with error 5027.
    database = place.mariadb / "data" / DATABASE
    database.mkdir(mode=0o700)
    shutil.chown(database, "slurm", "slurm")
