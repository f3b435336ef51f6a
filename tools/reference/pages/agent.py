"""Reference page of the agent: settings and metrics."""

from __future__ import annotations

import msgspec

from fairbank.priority.site_factor import Bend
from fairbank.slurm.agent import settings as agent
from fairbank.slurm.agent.clocks import BEYOND_SECONDS
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.looking import Looks
from fairbank.slurm.agent.metrics import Metrics
from fairbank.slurm.agent.pool import Senders
from fairbank.slurm.agent.silence import PartitionTerms
from tools.reference.pages.keys import key_tables


def agent_page() -> str:
    """Return the page with every key of agent.toml and every metric."""
    lines = [
        "# The agent",
        "",
        "`fairbank agent` runs on the host of slurmctld, beside the PrEp plug-in. It answers whether a job may start, and keeps all that",
        "the bank has not heard yet in its outbox. Why it is so is in [decision 0013](../decisions/0013-the-agents-outbox.md).",
        "It may also keep the [table of site factors](../decisions/0016-site-factor-table.md) up to date, which ranks jobs by credit;",
        "[its rules](site-factor.md) are a page of their own.",
        "",
        "## Settings",
        "",
        f"One TOML file, `{agent.SITE_FILE}`, or the one named by `--config` or `FAIRBANK_AGENT_CONFIG`. An empty file is enough where",
        "all is in its usual place. Unknown keys are refused with their place.",
        "",
        "```toml",
        *AGENT_EXAMPLE.splitlines(),
        "```",
        "",
    ]
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("(at the top)", agent.AgentSettings),
        ("[plugin]", agent.PluginSettings),
        ("[bank]", agent.BankSettings),
        ("[outbox]", agent.OutboxSettings),
        ("[senders]", Senders),
        ("[control]", agent.ControlSettings),
        ("[site_factor]", agent.SiteFactorSettings),
        ("[site_factor.credit] and [site_factor.expiry]", Bend),
        ("[release]", agent.ReleaseSettings),
        ("[terms] and [partitions.NAME]", PartitionTerms),
    )
    lines += key_tables(tables, level=3)
    lines += CLOCKS.splitlines()
    core = Core(lambda partition: PartitionTerms(), Senders(), life="", now=0.0)
    lines += [
        "## Metrics",
        "",
        "`GET /metrics` on the control socket, or on its port:",
        "",
        "| Metric | Meaning |",
        "| --- | --- |",
    ]
    lines += [
        f"| `{each.name}{'_total' if each.type == 'counter' else ''}` | {each.documentation} |"
        for each in Metrics(core, Looks()).families()
    ]
    return "\n".join(lines) + "\n"


CLOCKS = f"""\
## When a clock is set

How long a run lasted is what slurmctld says: the difference between its end and its start by the clock of that host, less the time in
which it was suspended, and never below 0. slurmdbd keeps the same difference (`sacct`'s Elapsed). So books and accounting agree, and
`fairbank reconcile` finds nothing, also where the clock was set while the run lasted:

| The clock was set | What becomes of the run |
| --- | --- |
| back, so that it ended before it began | it costs nothing, and its hold is given back; the agent's log says so |
| back or forward by less | it costs that much less or more, as in accounting |
| forward, so that it lasted over {BEYOND_SECONDS} s beyond its limit | it costs what Slurm counts, where \
`policy.overrun` is `write_off` at most what was held and what else is left; the agent's log names it, \
and `fairbank refund` gives back what is too much |
| forward, and that of the bank is right | its end is told again until the bank's clock comes near (`TIMESTAMP_IN_FUTURE`), and its hold \
stays till then; `fairbank doctor --slurm` tells how many there are |
| back while it was suspended, so that it lasted longer than from its start to its end, by more than 3600 s | the bank does not take \
such an end, which the agent's log says; its hold stays until `fairbank reconcile --fix` charges what accounting has |

`fairbank doctor --slurm` compares the clocks of this host, of slurmctld and of the bank. Keep them right with chrony or ntpd.

So it was seen beside a Slurm 22.05 whose clock was set forward and back by a minute (`tests/slurm/test_clock.py`). Slurm itself may start
no job after its clock was set back, and `sacct` shows none that began before, until that time has come again.

"""

AGENT_EXAMPLE = """\
[plugin]
slurm_user = "slurm"          # slurm.conf's SlurmUser

[bank]
server = "https://bank.example.org"
token_file = "/etc/fairbank/agent.token"   # fairbank token create darwin --scopes agent:darwin -u slurm

[control]
port = 9341                   # for Prometheus, on 127.0.0.1

[site_factor]
path = "/run/fairbank-agent/site_factor"         # what Slurm's site_factor/fairbank reads
token_file = "/etc/fairbank/reader.token"  # fairbank token create reader --scopes read, of an administrator

[terms]
silence = "closed"            # while the bank is away, jobs wait

[partitions.debug]
silence = "open"              # but for these: they run, and are charged later
"""
