"""Reference page of the workload manager's commands under Slurm's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairbank.report.slurm import sacct, sacctmgr, sinfo, squeue
from fairbank.report.slurm.layout import Columns
from fairbank.wlm.commands import scancel, scontrol
from fairbank.wlm.commands.arguments import HELP, CommandOption
from fairbank.wlm.commands.tables import priorities, show
from fairbank.wlm.commands.tables import sacct as accounting
from fairbank.wlm.commands.tables import sacctmgr as accounts
from fairbank.wlm.commands.tables import sinfo as machine
from fairbank.wlm.commands.tables import squeue as queue

_INTRODUCTION = """# Commands of the workload manager

The embedded workload manager has commands under Slurm's names. Options, columns, messages and exit
codes are those of Slurm 24.11: its manual pages hold, except for what is missing here. For sbatch
and `srun --batch` see their `--help`.

- `--help`, `--usage` and `--version` exist in every command.
- A variable stands for its option, and the command line counts more. Times are in the time zone of
  `TZ`. `SLURM_TIME_FORMAT` is their form: `standard`, `relative`, or one
  of strftime(3).
- squeue takes its columns from `SQUEUE_FORMAT` or `SQUEUE_FORMAT2`, sinfo from `SINFO_FORMAT` or
  `SINFO_FORMAT2`, unless an option selects columns.
- `--json` of squeue, sinfo, sacct and scontrol show has the shape of Slurm's, with the fields of
  the tables.
- sacctmgr only shows. Accounts are the projects of the bank, which `fairbank project` changes; QOS,
  limits and shares are in `wlm.toml`.
- sdiag prints N/A for what the controller does not count.
"""
OPTIONS: Mapping[str, Sequence[CommandOption]] = {
    "squeue": queue.OPTIONS,
    "sinfo": machine.OPTIONS,
    "sacct": accounting.SACCT_OPTIONS,
    "sstat": accounting.SSTAT_OPTIONS,
    "sprio": priorities.SPRIO_OPTIONS,
    "sshare": priorities.SSHARE_OPTIONS,
    "sacctmgr": accounts.OPTIONS,
    "sdiag": show.SDIAG_OPTIONS,
    "scancel": scancel.OPTIONS,
    "scontrol": scontrol.OPTIONS,
}
"""Options of each command that has a page here."""
_BY_LETTER = {"squeue": squeue.COLUMNS, "sinfo": sinfo.COLUMNS}
_BY_NAME: Mapping[str, Columns] = {
    "sacct": sacct.SACCT,
    "sstat": sacct.SSTAT,
    "sacctmgr show accounts": sacctmgr.ACCOUNT,
    "sacctmgr show associations": sacctmgr.ASSOCIATION,
    "sacctmgr show users": sacctmgr.USER,
    "sacctmgr show qos": sacctmgr.QOS,
    "sacctmgr show clusters": sacctmgr.CLUSTER,
    "sacctmgr show tres": sacctmgr.TRES,
}


def wlm_commands_page() -> str:
    """Return the page with the options and columns of the commands."""
    lines = [_INTRODUCTION]
    for name, options in OPTIONS.items():
        lines += [f"## {name}", "", *_option_table(options), ""]
        if name in _BY_LETTER:
            lines += ["Columns by name and letter:", "", _with_letters(_BY_LETTER[name]), ""]
    lines += ["## Columns of accounting", ""]
    for name, columns in _BY_NAME.items():
        lines += [f"{name}: {', '.join(f'`{column}`' for column in columns)}.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _option_table(options: Sequence[CommandOption]) -> Iterator[str]:
    yield "| Option | Value | Variable | Effect |"
    yield "| --- | --- | --- | --- |"
    for option in options:
        if option in HELP:
            continue
        letter = f"`-{option.letter}` " if option.letter else ""
        cells = (f"{letter}`--{option.name}`", option.value, option.variable, option.about)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _with_letters(columns: Columns) -> str:
    texts = (
        f"`{column.name}`" + (f" (`%{column.letter}`)" if column.letter else "")
        for column in columns.values()
    )
    return f"{', '.join(texts)}."
