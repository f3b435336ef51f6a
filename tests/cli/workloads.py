"""Directory of small workloads and policies, for the commands that simulate."""

from __future__ import annotations

from pathlib import Path

from fairbank.simulator.traces.swf import write
from fairbank.simulator.traces.synthetic import SitePartition, SyntheticSite, month

HEAD = "; MaxProcs: 8\n"


def write_workloads(folder: Path) -> None:
    """Write a week on 32 processors, a trace with every kind of bad line, sacct output, shares and
    policies.
    """
    site = SyntheticSite(
        pools=(SitePartition("cpu", 32),), projects=3, users=6, jobs=150, days=4, node_failures=0
    )
    (folder / "week.swf").write_text("".join(write(*month(site, seed=5))))
    (folder / "shares.csv").write_text("account,shares\n1,50\n2,30\n3,20\n")
    (folder / "dirt.swf").write_text(HEAD + "".join(DIRT))
    (folder / "fairer.toml").write_text(FAIRER)
    (folder / "credit.toml").write_text('base = "slurm"\n[site_factor]\nweight = 20000\n')
    (folder / "calm.toml").write_text('base = "easy"\n')
    (folder / "sacct.txt").write_text(ACCOUNTING)
    (folder / "accounts.csv").write_text("account,shares\nastro,60\nbio,40\n")
    (folder / "nodes.swf").write_text("; MaxNodes: 8\n" + (folder / "week.swf").read_text())


def line(
    number: int,
    submit: int = 0,
    run: int = 10,
    allocated: int = -1,
    requested: int = 1,
    limit: int = 20,
    status: int = 1,
) -> str:
    size = f"{allocated} -1 -1 {requested}"
    return f"{number} {submit} -1 {run} {size} {limit} -1 {status} 7 7 -1 1 1 -1 -1\n"


DIRT = (
    line(1),
    line(2, run=-1),
    line(3, allocated=-1, requested=-1),
    line(4, allocated=3, requested=-1),
    line(5, requested=9),
    line(6, status=2),
    line(7, run=0),
    line(8, limit=-1),
    line(9, run=30),
)


FAIRER = """
base = "slurm"

[scheduler]
bf_interval = 300
bf_max_job_user = 2

[priority]
half_life = "1-0"
fair_share = "classic"

[priority.weights]
fairshare = 100000
"""


ACCOUNTING = """\
JobID|Submit|Start|End|Elapsed|State|User|Account|Timelimit|AllocCPUS|Suspended
1|@08:00:00|@08:00:00|@09:00:00|01:00:00|COMPLETED|alice|astro|02:00:00|4|00:00:00
1.batch|@08:00:00|@08:00:00|@09:00:00|01:00:00|COMPLETED|||| 4|
2_1|@08:00:01|@08:10:00|@08:40:00|00:20:00|TIMEOUT|bob|bio|00:10:00|8|00:10:00
2_2|@08:00:01|@08:10:00|@08:09:00|00:20:00|COMPLETED|bob|bio|00:10:00|8|00:00:00
2_3|@08:00:01|@08:10:00|@08:20:00|-1|COMPLETED|bob|bio|00:10:00|8|00:00:00
3|@08:00:02|Unknown|Unknown|00:00:00|PENDING|carol|bio|UNLIMITED|1|00:00:00
4|@08:00:00|@08:00:00|@08:05:00|00:05:00|FAILED|carol|bio|UNLIMITED|2|00:00:00
4|@08:05:00|@08:06:00|@08:07:00|00:01:00|COMPLETED|carol|bio|UNLIMITED|2|00:00:00
""".replace("@", "2026-11-21T")
