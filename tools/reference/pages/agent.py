"""Reference page of the agent: settings, states of a run, metrics."""

from __future__ import annotations

import msgspec

from fairbank.agent import settings as agent
from fairbank.agent.metrics import COUNTERS, GAUGES, PREFIX, VERDICT_SECONDS
from fairbank.agent.outage_policy import PartitionTerms
from fairbank.agent.reports.bank_status import SenderSettings
from fairbank.agent.reports.report import OVERTIME_SECONDS
from fairbank.agent.run_states import state_diagram
from fairbank.priority.site_factor import Bend
from fairbank.slurm import agent_settings as slurm_agent
from tools.reference.pages.keys import key_tables


def agent_page() -> str:
    """Return the page: every key of agent.toml, the states of a run, and every metric."""
    lines = [
        "# The agent",
        "",
        "`fairbank agent` runs on the host of slurmctld, next to the PrEp plug-in. It decides",
        "whether a job may start, and keeps reports that the bank has not received in its outbox",
        "([decision 0013](../decisions/0013-agent-outbox.md)). It can also write the",
        "[table of site factors](../decisions/0016-site-factor-table.md), which ranks jobs",
        "by credit; [its rules](site-factor.md) are a page of their own.",
        "",
        "## Settings",
        "",
        f"One TOML file, `{slurm_agent.SITE_FILE}`, or the one that `--config` or",
        "`FAIRBANK_AGENT_CONFIG` names. An empty file is enough if the defaults fit. An unknown",
        "key is an error that names it.",
        "",
        "```toml",
        *AGENT_EXAMPLE.splitlines(),
        "```",
        "",
    ]
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("(at the top)", slurm_agent.SlurmAgentSettings),
        ("[plugin]", agent.PluginSettings),
        ("[bank]", agent.BankConnectionSettings),
        ("[outbox]", agent.OutboxSettings),
        ("[senders]", SenderSettings),
        ("[control]", agent.ControlSettings),
        ("[site_factor]", slurm_agent.SiteFactorSettings),
        ("[site_factor.credit] and [site_factor.expiry]", Bend),
        ("[release]", slurm_agent.ReleaseSettings),
        ("[terms] and [partitions.NAME]", PartitionTerms),
    )
    lines += key_tables(tables, level=3)
    lines += [
        "## States of a run",
        "",
        "The agent keeps a state for each run. `src/fairbank/agent/run_states.py` has the table",
        "with all events and effects, from which this diagram is drawn; an event that is not in",
        "the table changes nothing.",
        "",
        "```mermaid",
        *state_diagram().splitlines(),
        "```",
        "",
    ]
    lines += (CLUSTERS + CLOCKS).splitlines()
    lines += [
        "## Metrics",
        "",
        "`GET /metrics` on the control socket, or on its port:",
        "",
        "| Metric | Labels | Meaning |",
        "| --- | --- | --- |",
        *(f"| `{PREFIX}{name}` | | {text} |" for name, text in GAUGES.items()),
        *(
            f"| `{PREFIX}{name}_total` | {', '.join(f'`{label}`' for label in labels)} | {text} |"
            for name, (text, labels) in COUNTERS.items()
        ),
        f"| `{PREFIX}verdict_seconds` | `le` | Histogram: {VERDICT_SECONDS} |",
    ]
    return "\n".join(lines) + "\n"


CLUSTERS = """\
## Clusters that the bank does not accept

Reports of a cluster that the bank's settings do not have, perhaps because it was renamed, or that
this agent may not report, are set aside in the outbox. The bank counts as up, and the reports of
other clusters go on. `fairbank agent status` exits with 8 and shows the cluster, the number of its
reports and the remedy. One report at a time, at least once a minute, tests whether the bank accepts
the cluster; then all are sent. Until then the outage policy of the partition decides on its jobs,
and the holds of jobs that have ended stay.

"""

CLOCKS = f"""\
## When a clock is set

The elapsed time of a run is the difference between its end and its start by slurmctld's clock, less
the time in which it was suspended, and never below 0. slurmdbd stores the same difference
(`sacct`'s Elapsed). So ledger and accounting agree, and `fairbank reconcile` finds no difference,
also where the clock was set during the run:

| The clock was set | Result for the run |
| --- | --- |
| back, so that it ended before it began | it costs nothing, and its hold is released; the agent's \
log has it |
| back or forward by less | it costs that much less or more, as in accounting |
| forward, so that it lasted over {OVERTIME_SECONDS} s beyond its limit | it costs what Slurm \
counts; where `policy.overrun` is `write_off`, at most the hold and the available credit; \
the agent's log has it, and `fairbank refund` gives back what is too much |
| forward, and the bank's clock is right | its end is sent again until the bank's clock comes near \
(`TIMESTAMP_IN_FUTURE`), and its hold stays until then; `fairbank doctor --slurm` shows \
the number of them |
| back while it was suspended, so that its elapsed time is over 3600 s longer than the time from \
its start to its end | the bank refuses the end, and the agent's log has it; the hold stays until \
`fairbank reconcile --fix` charges what accounting has |

`fairbank doctor --slurm` compares the clocks of this host, of slurmctld and of the bank. Keep them
right with chrony or ntpd.

`tests/slurm/test_clock.py` shows this with a Slurm 22.05 whose clock is set forward and back by a
minute. Slurm itself may start no job after its clock was set back, and `sacct` shows none that
began before, until that time has come again.

"""

AGENT_EXAMPLE = """\
[plugin]
slurm_user = "slurm"          # slurm.conf's SlurmUser

[bank]
server = "https://bank.example.org"
# fairbank token create darwin --scopes agent:darwin -u slurm
token_file = "/etc/fairbank/agent.token"

[control]
port = 9341                   # for Prometheus, on 127.0.0.1

[site_factor]
path = "/run/fairbank-agent/site_factor"         # what Slurm's site_factor/fairbank reads
# fairbank token create reader --scopes read, of an administrator
token_file = "/etc/fairbank/reader.token"

[terms]
outage_policy = "closed"      # while the bank is down, jobs wait

[partitions.debug]
outage_policy = "open"        # these run, and are charged later
"""
