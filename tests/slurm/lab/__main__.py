"""`python -m tests.slurm.lab`: the lab on the command line. Start, inspect, disturb, empty and
remove a cluster.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.slurm.lab import (
    fairshare_recorder,
    isolation,
    packages,
    people,
    queue_recorder,
    recorder,
    release,
    source,
    trees,
)
from tests.slurm.lab.cluster import Cluster, ClusterExists, NoSuchCluster, names
from tests.slurm.lab.daemons import MARIADBD, MUNGED, SLURMCTLD, SLURMDBD
from tests.slurm.lab.machine import SIZES
from tests.wlm.scenarios.recorded_transcripts import write_recording
from tests.wlm.scenarios.scenario import scenarios
from tests.wlm.scenarios.slurm_site import CHANGES, SIZE, slurm_site
from tests.wlm.scenarios.transcript import transcripts

UNAVAILABLE, WRONG = 69, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 69 if this machine can have no lab, 1 if there is no such cluster or
    one too many.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.verb(options) or 0
    except packages.Unobtainable as error:
        print(error, file=sys.stderr)
        return UNAVAILABLE
    except (people.NameTaken, ClusterExists, NoSuchCluster) as error:
        print(error, file=sys.stderr)
        return WRONG


def install(options: argparse.Namespace) -> None:
    """install the Debian packages that are missing; or make the root of another release and fetch
    what the tests need in it, and build a Slurm from source for it
    """
    if options.source and not options.release:
        raise packages.Unobtainable("--source needs a release of Debian, in whose root it is built")
    if options.release:
        made = release.made(options.release)
        isolation.furnish(made)
        if options.source:
            source.build(source.read(options.source, made))
        return
    installed = packages.install()
    print(f"installed {', '.join(installed)}" if installed else "every package is there")


def within(options: argparse.Namespace) -> int:
    """run a command of this checkout with the Slurm and the Python of another release, which is
    installed
    """
    image = release.found(options.release)
    mounts = source.found(options.source, image).mounts if options.source else None
    return isolation.run(image, options.command, mounts)


def up(options: argparse.Namespace) -> None:
    """start a cluster and print how to use it"""
    begun = time.monotonic()
    cluster = Cluster.up(options.name, size=options.size)
    print(f"every node is idle after {time.monotonic() - begun:.1f} s. In a shell:")
    print(f"    export SLURM_CONF={cluster.place.slurm_conf} TZ=UTC")
    print("    srun --uid=alice --chdir=/tmp hostname")


def status(options: argparse.Namespace) -> None:
    """show the daemons, nodes and jobs of each cluster"""
    for name in names():
        cluster = Cluster.found(name)
        print(f"{name}: {cluster.place.folder}, ports from {cluster.place.first_port}")
        for daemon in (MUNGED, MARIADBD, SLURMDBD, SLURMCTLD, *cluster.node_names):
            pid = cluster.pid(daemon)
            print(f"    {daemon:<10} {pid or 'down'}")
        print(f"    {len(cluster.processes())} processes in all")
        for command in ("sinfo", "squeue"):
            result = cluster.run("root", command)
            print(result.out + result.err, end="")


def empty(options: argparse.Namespace) -> None:
    """remove all jobs, and start the daemons that do not run"""
    Cluster.found(options.name).empty()


def down(options: argparse.Namespace) -> None:
    """end every process of a cluster and remove its folder; with the last one also the users"""
    Cluster.found(options.name).down()


def guard(options: argparse.Namespace) -> None:
    """remove a cluster when the standard input ends (for tests that are killed)"""
    sys.stdin.read()
    if options.name in names():
        down(options)


def record(options: argparse.Namespace) -> None:
    """record this Slurm's output for the tests of parsers, from a separate cluster; takes a few
    minutes
    """
    cluster = Cluster.up(options.name)
    try:
        for line in recorder.record(cluster, options.folder):
            print(f"not answered: {line}")
    finally:
        cluster.down()


def record_fairshare(options: argparse.Namespace) -> None:
    """record the output of sshare and sprio at one moment, in every form; takes a few minutes"""
    cluster = Cluster.up(options.name)
    try:
        fairshare_recorder.record(cluster, options.folder)
    finally:
        cluster.down()


def record_trees(options: argparse.Namespace) -> None:
    """record the output of sshare for random trees of accounts; takes ten minutes"""
    cluster = Cluster.up(options.name, size="small")
    try:
        trees.record(cluster, options.folder)
    finally:
        cluster.down()


def record_queue(options: argparse.Namespace) -> None:
    """record Slurm's output on a queue in which jobs wait for every kind of reason; takes a
    minute
    """
    cluster = Cluster.up(options.name, changes=queue_recorder.CHANGES)
    try:
        queue_recorder.record(cluster, options.folder)
    finally:
        cluster.down()


def record_scenarios(options: argparse.Namespace) -> None:
    """record the scenarios of tests/wlm/scenarios; takes five minutes"""
    cluster = Cluster.up(options.name, size=SIZE, changes=CHANGES)
    try:
        release = ".".join(f"{part:02}" for part in cluster.release)
        write_recording(options.folder, release, transcripts(slurm_site(cluster), scenarios()))
    finally:
        cluster.down()


COMMANDS = (
    install,
    within,
    up,
    status,
    empty,
    down,
    guard,
    record,
    record_fairshare,
    record_trees,
    record_queue,
    record_scenarios,
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.slurm.lab", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for verb in COMMANDS:
        subparser = verbs.add_parser(verb.__name__, help=verb.__doc__, description=verb.__doc__)
        subparser.set_defaults(verb=verb)
        if verb in (install, within):
            subparser.add_argument(
                "--source", type=Path, help="source tree of the Slurm to use in this release"
            )
            subparser.add_argument(
                "release",
                nargs=None if verb is within else "?",
                help="of Debian, such as trixie or sid",
            )
        if verb is within:
            subparser.add_argument(
                "command",
                nargs=argparse.REMAINDER,
                help="and its words, such as .venv/bin/pytest tests/slurm/test_jobs.py",
            )
        if verb in (up, empty, down, guard):
            subparser.add_argument(
                "--name", default="lab", help="which cluster of this machine; default %(default)s"
            )
        if verb in (record, record_fairshare, record_trees, record_queue, record_scenarios):
            subparser.add_argument(
                "folder",
                type=Path,
                help="where the answers go, such as tests/golden/slurm-22.05; a file for scenarios",
            )
            subparser.set_defaults(name="recording")
        if verb is up:
            subparser.add_argument(
                "--size",
                default="full",
                choices=sorted(SIZES),
                help="how many nodes; default %(default)s",
            )
    return parser


if __name__ == "__main__":
    sys.exit(main())
