"""slurmctld with a clock that a test sets; the clock of the host does not change."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.daemons import SLURMCTLD, await_daemon, launch_daemon, slurmctld

SOURCE = Path(__file__).with_name("own_clock.c")


class Clock:
    """Clock whose offset in seconds is in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.set(0)

    def set(self, seconds: int) -> None:
        temporary = self.file.with_suffix(".new")
        temporary.write_text(f"{seconds}\n")
        temporary.chmod(0o644)
        temporary.replace(self.file)


@contextmanager
def shifted_clock(cluster: Cluster) -> Iterator[Clock]:
    """Run slurmctld with this clock as long as the block lasts."""
    place = cluster.place
    clock, library = Clock(place.folder / "clock"), place.folder / "own_clock.so"
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O1",
            "-shared",
            "-fPIC",
            "-o",
            library,
            SOURCE,
        ],
        check=True,
    )
    library.chmod(0o755)
    daemon = replace(
        slurmctld(place),
        environment=(("LD_PRELOAD", str(library)), ("FAIRBANK_CLOCK", str(clock.file))),
    )
    cluster.stop(SLURMCTLD)
    launch_daemon(place, daemon)
    await_daemon(place, daemon)
    try:
        yield clock
    finally:
        cluster.stop(SLURMCTLD)
        cluster.start(SLURMCTLD)
