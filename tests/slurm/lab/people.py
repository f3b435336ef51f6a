"""Users of the lab: Unix users and groups, and the same users in Slurm's accounting. They are
created on the host and removed again.
"""

from __future__ import annotations

import contextlib
import grp
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.slurm.lab.processes import Process, processes_of
from tests.support.conditions import wait_until

MARK = "a person of Fairbank's test lab"  # identifies the lab's users in /etc/passwd
COMMON_GROUP = "users"  # group of all users, and of no project
END_SECONDS = 10


class NameTaken(Exception):
    """The host has another user of this name; the message names the user."""


@dataclass(frozen=True)
class Team:
    """Unix group and the Slurm account of the same name."""

    name: str
    gid: int
    shares: int


@dataclass(frozen=True)
class Person:
    """Unix user, with the shares in each of their teams. The first team is the default account."""

    name: str
    uid: int
    teams: tuple[tuple[str, str], ...]


# The numbers are above those of a host's users, and below those of systemd's dynamic users.
TEAMS = (Team("wg_astro", 60_651, 50), Team("wg_bio", 60_652, 30), Team("wg_chem", 60_653, 20))
PEOPLE = (
    Person("alice", 60_601, (("wg_astro", "10"),)),
    Person("bob", 60_602, (("wg_bio", "10"), ("wg_astro", "10"))),
    Person("carol", 60_603, (("wg_bio", "20"),)),
    Person("dave", 60_604, (("wg_chem", "parent"),)),
)
QOS_PRIORITIES = {
    "normal": 0,
    "high": 100,
    "low": 1,
}  # QOS and their priorities; Slurm creates the first one itself


def accounting(
    cluster: str, people: Sequence[Person] = PEOPLE, teams: Sequence[Team] = TEAMS
) -> Iterator[tuple[str, ...]]:
    """Generate the calls of `sacctmgr` that give a new slurmdbd the cluster, QOS, accounts, users
    and shares.
    """
    yield ("add", "cluster", cluster)
    for qos, priority in QOS_PRIORITIES.items():
        if qos != "normal":
            yield ("add", "qos", qos, f"priority={priority}")
    for team in teams:
        yield (
            "add",
            "account",
            team.name,
            f"cluster={cluster}",
            f"fairshare={team.shares}",
            f"description={team.name}",
        )
    yield (
        "modify",
        "account",
        *[team.name for team in teams],
        "set",
        f"qos={','.join(QOS_PRIORITIES)}",
        "defaultqos=normal",
    )
    for person in people:
        default = person.teams[0][0]
        for account, shares in person.teams:
            yield (
                "add",
                "user",
                person.name,
                f"account={account}",
                f"defaultaccount={default}",
                f"fairshare={shares}",
            )


def create_users(people: Sequence[Person] = PEOPLE, teams: Sequence[Team] = TEAMS) -> None:
    """Create the users and groups that the host does not have yet. Raises Taken."""
    for name, number in _numbers(people, teams):
        _check_names(name, number)
    known = {entry.gr_name for entry in grp.getgrall()}
    for team in teams:
        if team.name not in known:
            _run("groupadd", "--gid", str(team.gid), team.name)
    for person in people:
        if not _is_here(person.name):
            _run("useradd", *_useradd_options(person), person.name)


def remove_users(
    people: Sequence[Person] = PEOPLE,
    teams: Sequence[Team] = TEAMS,
    *,
    seconds: float = END_SECONDS,
) -> list[str]:
    """Remove the lab's users and groups and no others. Their lab processes are killed; processes
    that are ending get at most `seconds`. A user with a process outside the lab, such as a `su
    alice`, stays and is returned: the next call removes them.
    """
    ours = [person for person in people if _is_ours(person)]
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not _kill_lab_processes(ours), "their processes to end", seconds=seconds)
    stay: list[Person] = []
    for person in ours:
        if processes := processes_of(person.uid):
            listed = ", ".join(
                f"{process.pid} ({process.command.decode(errors='replace')})"
                for process in processes
            )
            print(
                f"user {person.name} is kept: processes outside the lab: {listed}", file=sys.stderr
            )
            stay.append(person)
        else:
            _run("userdel", person.name)
    kept_teams = {team for person in stay for team, _ in person.teams}
    known = {entry.gr_name: entry.gr_gid for entry in grp.getgrall()}
    for team in teams:
        if known.get(team.name) == team.gid and team.name not in kept_teams:
            _run("groupdel", team.name)
    return [person.name for person in stay]


def _kill_lab_processes(people: Sequence[Person]) -> list[Process]:
    """Kill their processes of the lab with SIGKILL."""
    processes = [process for person in people for process in processes_of(person.uid)]
    for process in processes:
        if process.is_lab_process:
            process.send(signal.SIGKILL)
    return processes


def _useradd_options(person: Person) -> list[str]:
    """Return options of useradd without home, mailbox, subordinate numbers and lastlog: nothing
    that userdel would leave behind.
    """
    teams = ",".join(team for team, _ in person.teams)
    options = [
        "--uid",
        str(person.uid),
        "--comment",
        MARK,
        "--no-user-group",
        "--gid",
        COMMON_GROUP,
        "--groups",
        teams,
    ]
    options += [
        "--home-dir",
        "/nonexistent",
        "--no-create-home",
        "--shell",
        "/bin/sh",
        "--no-log-init",
    ]
    return [*options, "--key", "SUB_UID_COUNT=0", "--key", "SUB_GID_COUNT=0"]


def _numbers(people: Sequence[Person], teams: Sequence[Team]) -> Iterator[tuple[str, int]]:
    yield from ((person.name, person.uid) for person in people)
    yield from ((team.name, team.gid) for team in teams)


def _check_names(name: str, number: int) -> None:
    for entry in pwd.getpwall():
        if name == entry.pw_name and (entry.pw_gecos != MARK or entry.pw_uid != number):
            raise NameTaken(
                f"this host has a user {name} of its own; the lab needs the name: use another"
                " machine or a container"
            )
    for group in grp.getgrall():
        if name == group.gr_name and group.gr_gid != number:
            raise NameTaken(
                f"this host has a group {name} of its own; the lab needs the name: use another"
                " machine or a container"
            )


def _is_ours(person: Person) -> bool:
    return _is_here(person.name) and pwd.getpwnam(person.name).pw_gecos == MARK


def _is_here(user: str) -> bool:
    return any(entry.pw_name == user for entry in pwd.getpwall())


def _run(*command: str) -> None:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise RuntimeError(f"`{' '.join(command)}` failed: {process.stderr.strip()}")
