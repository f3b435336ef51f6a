"""Transcripts of scenarios: what depends on the site is replaced, and the rest is named fields."""

from __future__ import annotations

import grp
import os
import pwd
import re
import socket
from collections.abc import Iterator, Mapping, Sequence

from tests.wlm.scenarios.scenario import CommandOutput, Scenario, Site, run_all

FIRST_JOB = 7_000_001
Transcript = Mapping[str, str]
"""Values by the name of the field: `2 exit`, `3 output`, `4 scontrol JobState`."""

# Fields that are left out where they have these values.
_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "scontrol": {
        "UserId": "<user>", "GroupId": "<user>", "MCS_label": "N/A", "Nice": "0",
        "Account": "(null)", "Dependency": "(null)", "Requeue": "1", "Restarts": "0",
        "BatchFlag": "1", "Reboot": "0", "ExitCode": "0:0", "TimeLimit": "00:30:00",
        "TimeMin": "N/A", "SubmitTime": "<time>", "EligibleTime": "<time>", "AccrueTime": "<time>",
        "Deadline": "N/A", "SuspendTime": "None", "SecsPreSuspend": "0", "Partition": "main",
        "ReqNodeList": "(null)", "ExcNodeList": "(null)", "NumNodes": "1", "NumCPUs": "1",
        "NumTasks": "1", "CPUs/Task": "1", "ReqB:S:C:T": "0:0:*:*", "Socks/Node": "*",
        "NtasksPerN:B:S:C": "0:0:*:*", "CoreSpec": "*", "MinCPUsNode": "1",
        "MinMemoryCPU": "1000M", "MinTmpDiskNode": "0", "Features": "(null)",
        "DelayBoot": "00:00:00", "OverSubscribe": "OK", "Contiguous": "0", "Licenses": "(null)",
        "Network": "(null)", "WorkDir": "<dir>", "StdIn": "/dev/null", "Power": "",
    },
    "squeue": {
        "USER": "<user>", "PARTITION": "main", "NODES": "1", "CPUS": "1", "MIN_MEMORY": "1000M",
        "TIME_LIMIT": "30:00", "DEPENDENCY": "(null)", "FEATURES": "(null)",
        "OVER_SUBSCRIBE": "OK", "ARRAY_TASK_ID": "N/A", "COMMENT": "(null)",
        "PRIORITY": "<priority>", "REQ_NODES": "", "EXC_NODES": "",
    },
    "sacct": {
        "Partition": "main", "ReqCPUS": "1", "ReqMem": "1000M", "NNodes": "1", "NTasks": "1",
        "ExitCode": "0:0", "DerivedExitCode": "0:0", "Timelimit": "00:30:00", "WorkDir": "<dir>",
        "Restarts": "0",
    },
}  # fmt: skip
_VOLATILE = frozenset(
    "Priority RunTime SecsPreSuspend AllocNode:Sid BatchHost LastSchedEval Scheduler".split()
)


def transcripts(
    site: Site, chosen: Sequence[Scenario], *, as_text: bool = False
) -> dict[str, Transcript]:
    """Run scenarios and return their transcripts by name.

    Args:
        site: where they run.
        chosen: the scenarios.
        as_text: add the form of what `show` has printed, so that with the values of the fields
            the whole text is compared.
    """
    return {
        name: _transcript(outputs, str(site.folder / name), as_text)
        for name, outputs in run_all(site, chosen).items()
    }


def _transcript(outputs: Sequence[CommandOutput], folder: str, as_text: bool) -> Transcript:
    normalise = _Normaliser(folder)
    fields: dict[str, str] = {}
    for number, one in enumerate(outputs, 1):
        text = normalise(one.output)
        if one.command.startswith("show "):
            for name, value in _shown(text, as_text):
                fields[f"{number} {name}"] = value
        elif re.fullmatch(r"(\w+=.*\n)+", text):  # variables of the environment
            for line in text.splitlines():
                name, _, value = line.partition("=")
                fields[f"{number} output {name}"] = value
        elif text:
            fields[f"{number} output"] = text.rstrip("\n")
        if one.code:
            fields[f"{number} exit"] = str(one.code)
    return fields


class _Normaliser:
    """Replaces ids of jobs, names of hosts and users, times and paths in texts of a scenario."""

    def __init__(self, folder: str) -> None:
        self._jobs: dict[str, str] = {}
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(os.getegid())
        host = re.escape(socket.gethostname().partition(".")[0])
        self._rules: Sequence[tuple[re.Pattern[str], str]] = [
            (re.compile(pattern), text)
            for pattern, text in (
                (re.escape(folder), "<dir>"),
                (r"/[^\s:]*/slurm_script", "<spool>/slurm_script"),
                (rf"\b{user.pw_name}\({user.pw_uid}\)", "<user>"),
                (rf"\b{group.gr_name}\({group.gr_gid}\)", "<user>"),
                (rf"(?<![\w/]){user.pw_name}\b", "<user>"),
                (rf"\b{host}\b", "<host>"),
                (r"\bslurmstepd-n\d\b", "slurmstepd"),  # of several slurmd on one host
                # By chance: a process ended before slurmstepd sent it a signal.
                (r"\nslurmstepd: error: _handle_signal_container: .* No such process", ""),
                # By chance: Slurm's next pass comes soon, or not; a step before has gone, or not.
                (r"(?m)^(srun|salloc): (Pending job alloc|job \d+ (queued|has been)).*\n?", ""),
                (r"(?m)^srun: (Job \d+ step creation temp|Step created for ).*\n?", ""),
                (r"(?m)^salloc: Job allocation \d+ has been revoked\.\n?", ""),
                (r"; starts (now|in [^\n]*)", "; <start>"),  # Slurm takes other jobs for longer
                (r"(?<=PRIO_PROCESS=)-?\d+", "0"),  # the priority with which the tests run
                (r"\bn\[[\d,-]+\]", "<nodes>"),
                (r"\bn\d\b", "<node>"),
                (r"\b202\d-\d\d-\d\dT\d\d:\d\d:\d\d", "<time>"),
            )
        ]

    def __call__(self, text: str) -> str:
        text = text.replace("\r", "<cr>")
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        return re.sub(rf"(?<!\d){str(FIRST_JOB)[:3]}\d{{4}}(?!\d)", self._job, text)

    def _job(self, match: re.Match[str]) -> str:
        return self._jobs.setdefault(match[0], f"<job-{len(self._jobs) + 1}>")


def _shown(text: str, as_text: bool) -> Iterator[tuple[str, str]]:
    """Yield the fields that `show` has printed."""
    for part in re.split(r"^@", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        read = _scontrol_fields if command == "scontrol" else _table_fields
        for row, name, value in read(printed.splitlines()):
            if _DEFAULTS[command].get(name) != value:
                yield f"{command} {row}{name}", value
        if as_text:
            yield f"{command} form", _form(command, printed)


def _form(command: str, printed: str) -> str:
    """Return a text without its values: names and headers, blanks, and the order of rows."""
    if command == "scontrol":
        return re.sub(r"=.*?(?=\s[A-Z][\w/:]*=|\s*$)", "=", printed, flags=re.MULTILINE)
    header, _, rows = printed.partition("\n")
    return f"{header}\n" + re.sub(r"\|.*", "", rows)


def _scontrol_fields(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield row, name and value of the fields of records on one line each."""
    records = [line for line in lines if line.startswith("JobId=")]
    if records != [line for line in lines if line]:
        yield "", "output", "\n".join(lines)
        return
    for line in records:
        words = re.split(r" (?=[A-Z][\w/:]*=)", line.rstrip())
        values = dict(word.partition("=")[::2] for word in words)
        task = values.get("ArrayTaskId")
        if "AllocTRES" in values:  # as the field TRES before 23.11
            allocated, requested = values.pop("AllocTRES"), values.pop("ReqTRES")
            values["TRES"] = requested if allocated == "(null)" else allocated
        if task:  # the ids of tasks follow the order in which they start
            del values["JobId"]
        for name, value in values.items():
            if name not in _VOLATILE or (name, value) == ("Priority", "0"):
                yield f"{task} " if task else "", name, value


def _table_fields(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield row, head and text of the cells of a table with `|` between columns."""
    rows = [line.split("|") for line in lines]
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        yield "", "output", "\n".join(lines)
        return
    heads, counts = rows[0], dict[str, int]()
    for row in rows[1:]:
        counts[row[0]] = counts.get(row[0], 0) + 1
        again = f"#{counts[row[0]]}" if counts[row[0]] > 1 else ""
        for head, value in zip(heads[1:], row[1:], strict=True):
            if head == "PRIORITY" and value != "0":
                value = "<priority>"
            if value:
                yield f"{row[0]}{again} ", head, value
