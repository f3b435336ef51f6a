"""Slurm commands that print recorded output: small programs in a directory for PATH, which log
their arguments. `scontrol --oneliner show node` prints the file `scontrol-show-node`; `sacct` of a
day prints `sacct-2026-11-21` if it exists, else `sacct`; with `--jobs` `sacct-jobs`, or for
processor time `sacct-spent`, for Unix groups `sacct-groups`; with `--json` the same with `.json`.
Without a recording the command fails.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden"

_PROGRAM = """#!/bin/sh
name=${0##*/} day= jobs= json=
{ printf %s "$name"; printf ' %s' "$@"; echo; } >> FOLDER/command_lines
for word; do
    case $word in
    --jobs=*) jobs=-jobs ;;
    --format=*,TotalCPU) jobs=-spent ;;
    --format=*,GID) jobs=-groups ;;
    --starttime=*) day=${word#*=}; day=${day%T*} ;;
    --json) json=.json ;;
    --immediate) [ -f FOLDER/refuses ] && { cat FOLDER/refuses >&2; exit 1; }; exit 0 ;;
    -*|*=*|withcoord) ;;
    *) name=$name-$word ;;
    esac
done
[ -f FOLDER/hangs ] && exec sleep 600
for each in "$name-$day" "$name"; do
    [ "$jobs" ] && each=$name$jobs
    [ -f "FOLDER/$each$json" ] && exec cat "FOLDER/$each$json"
done
echo "$name: error: nothing is recorded for this" >&2
exit 1
"""

_COMMANDS = ("sinfo", "sacct", "squeue", "sacctmgr", "scontrol", "sshare", "sprio")

# Which answer of the lab stands for which question.
OF_2205 = {
    "sinfo": "version.txt",
    "scontrol-show-config": "config.txt",
    "scontrol-show-partition": "partitions-oneliner.txt",
    "scontrol-show-node": "nodes-oneliner.txt",
    "sacctmgr-show-associations": "associations-plain.txt",
    "sacctmgr-show-account": "coordinators.txt",
    "sacctmgr-show-qos": "qos-plain.txt",
    "squeue": "squeue-runs.txt",
    "sacct": "sacct-runs.txt",
}


class RecordedSlurm:
    """Directory of the programs. With `environment` they replace the commands of Slurm."""

    def __init__(self, folder: Path) -> None:
        self._answers, self._programs = folder / "answers", folder / "programs"
        for folder in (self._answers, self._programs):
            folder.mkdir(parents=True)
        for name in _COMMANDS:
            program = self._programs / name
            program.write_text(_PROGRAM.replace("FOLDER", str(self._answers)))
            program.chmod(0o755)

    @classmethod
    def of_the_lab(cls, folder: Path) -> RecordedSlurm:
        """Return a Slurm 22.05 after the morning that was recorded in the lab."""
        result = cls(folder)
        for name, file in OF_2205.items():
            result.set_output(name, (GOLDEN / "slurm-22.05" / file).read_text())
        result.set_output("sacct-jobs", "")
        result.set_output("sacct-spent", "")
        result.set_output("sshare", "")
        return result

    def set_output(self, name: str, text: str) -> None:
        """Set the output of a command from now on."""
        (self._answers / name).write_text(text)

    def change_output(self, name: str, old: str, new: str) -> None:
        """Replace the first occurrence of a text in the output of a command."""
        text = (self._answers / name).read_text()
        assert old in text, (name, old)
        self.set_output(name, text.replace(old, new, 1))

    def remove_output(self, name: str) -> None:
        """Let the command fail from now on."""
        (self._answers / name).unlink()

    @property
    def command_lines(self) -> list[str]:
        """Return the command lines in order."""
        log = self._answers / "command_lines"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PATH": f"{self._programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def line(*cells: object) -> str:
    """Return a line of accounting."""
    return "\x1f".join(map(str, cells)) + "\n"
