"""Reference page of wlm.toml and of slurm.conf as the workload manager reads it."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from fairbank.cluster.node import Node
from fairbank.cluster.partition_rules import PartitionRules
from fairbank.core.time import show_duration
from fairbank.wlm.config.entries import KEYWORDS
from fairbank.wlm.config.keyword import NAMES, TABLES, TOP, Keyword, KeywordEffect
from fairbank.wlm.core.settings import WlmSettings

_TITLES = {
    TOP: "At the top of wlm.toml",
    **{table: f"[{table}]" for table in TABLES},
    **{table: f"[[{table}]]" for table in NAMES},
}
_DEFAULTS = {"nodes": Node(name="n"), "partitions": PartitionRules(name="p")}
_INTRODUCTION = """# Settings of the workload manager

One file: `wlm.toml`, or a `slurm.conf`. Both have the same keywords and forms of values. In
`wlm.toml` a keyword is in lower case with underscores, in the table of its group; a list may be a
list of TOML. Keywords without a name of slurm.conf are in `wlm.toml` only.

- `slurm_conf = "slurm.conf"` reads the keywords of that file as well. No keyword may be in both.
- In slurm.conf, case does not count. `#` begins a comment, a backslash at the end continues a line,
  quotes enclose a value with blanks, and `Include FILE` reads another file from the directory of
  the slurm.conf.
- A node or partition with the name DEFAULT holds for those after it, keyword by keyword.
- An unknown keyword is refused, and so is one that is given twice. The message names file, line and
  keyword, the remedy the accepted form.
- *No effect*: the keyword is accepted, and reported once when the file is read.
- The memory of partitions that have none of their own is that of `[scheduling]`.
- Root and the user of the daemons are operators, beside those of `operators`.
- With `key = true` only root and operators submit to a partition, until partition keys exist.
- `node_resources = "actual"` schedules by what nodes register, if it is more than is configured. A
  node that registers less is DOWN in both cases, with the reason `Low RealMemory` or the like. It
  looks at its host every second. Nodes of `fairbank cluster up` have the part of the host that they
  had when their sizes were chosen, so they may have more CPUs than the host; what the host loses
  later, they lose too. A change by up to 1 % does not count.
- `slurmctld_debug` and `slurmd_debug` are the levels of the log files, which have lines of JSON:
  `verbose` shows what `info` does, and all levels from `debug` on show the same.
  `slurmctld_syslog_debug` and `slurmd_syslog_debug` are those of syslog, `quiet` by default.
- `max_script_size` of SchedulerParameters is the largest script, 4 MiB by default. Of more than
  12 MiB none arrives, since a request has at most 16 MiB.
- A log file is emptied at 10 MiB, with a copy at `FILE.1`. For logrotate, use `copytruncate`.
- With `server` in `[bank]`, the socket of the bank, accounts are its projects and users their
  members. The controller reads them every 30 s and when it refuses an account, and stores them.
  `[[associations]]` then give shares and limits; a user whom only they name is refused.
- A new configuration takes effect as a whole or not at all. While the controller runs, the name of
  the cluster, hosts, log files, the port of the metrics and the directory of the state cannot
  change. While a node has jobs, it cannot be removed, and have neither less than they have nor
  another number of threads. A partition with jobs cannot be removed.
"""


def wlm_settings_page() -> str:
    """Return the page with every keyword, its accepted form, default and effect."""
    lines = [_INTRODUCTION]
    for group, title in _TITLES.items():
        lines += [
            f"## {title}",
            "",
            "| wlm.toml | slurm.conf | Accepted | Default | Effect |",
            "| --- | --- | --- | --- | --- |",
            *(_row(keyword) for keyword in KEYWORDS if keyword.group == group),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _row(keyword: Keyword) -> str:
    accepted = keyword.form.words.replace("|", "\\|") if keyword.form else "anything"
    if keyword.effect is KeywordEffect.REFUSED:
        accepted = ""
    note = f": {keyword.note}" if keyword.note else ""
    cells = (
        f"`{keyword.key}`",
        f"`{keyword.name}`" if keyword.is_in_slurm_conf else "",
        accepted,
        next(_default(keyword), ""),
        f"{keyword.effect.value}{note}",
    )
    return f"| {' | '.join(cells)} |"


def _default(keyword: Keyword) -> Iterator[str]:
    """Yield the default as a file has it; nothing if there is none to show."""
    owner = _DEFAULTS.get(keyword.group, WlmSettings())
    try:
        value = attrgetter(keyword.targets[0])(owner)
    except AttributeError:
        return
    words = keyword.form.words if keyword.form else ""
    choices = words.removeprefix("one of ").split(", ") if words.startswith("one of ") else []
    if keyword.effect is not KeywordEffect.YES or value in ("", ()):
        return
    if value is None:
        yield "none"
    elif value in choices:
        yield f"`{value}`"
    elif choices:
        yield f"`{choices[0]}`"  # the first word is the default
    elif isinstance(value, bool):
        yield f"`{str(value).lower()}`"
    elif isinstance(value, int):
        yield f"`{show_duration(value) if words.startswith('minutes,') else value}`"
