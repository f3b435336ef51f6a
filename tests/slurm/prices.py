"""Bank with the prices of Slurm's billing weights for the lab's partitions, and the expected
billing of requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.slurm.lab.machine import SIZES
from tests.support.server import FairbankServer, create_bank

FULL = SIZES["full"]
WEIGHTS = {group.partition: ("gpu" if group.gpus else "cpu", group.weights) for group in FULL}
PRICES = "".join(
    f'[clusters.lab.partitions."{group.partition}"]\n'
    f'resource = "{WEIGHTS[group.partition][0]}"\nweights = "{group.weights}"\n'
    f"node_cpus = {group.cpus}\nnode_memory = {group.memory}\ndef_mem_per_cpu = 1000\n"
    f'node_gres = "{f"gpu:{group.gpu_kind}:{group.gpus}" if group.gpus else ""}"\n'
    for group in FULL
)


# The most expensive resource counts, not the sum. sacct and this table round it down.
BILLING = (
    ("cpu", "-c1 --mem=64G", 32),  # HADM: one core with half of the memory ...
    ("cpu", "-c32 --mem=1G", 32),  # ... costs what half of the cores cost
    ("cpu", "-c4 --mem=2G", 4),
    ("cpu", "-N2 -n2 --mem=16G", 16),  # of the job's totals: 2 nodes with 16 GiB each
    ("cpu", "--exclusive -n1", 64),
    ("gpu", "-c16 --mem=64G --gres=gpu:2", 24),
    ("gpu", "-c1 --gres=gpu:1", 12),
    ("gpu", "-N2 -n2 --gres=gpu:4", 96),
    ("gpu-t4", "-c16 --mem=1G --gres=gpu:1", 1),  # HADM: a GPU is worth 16 cores ...
    ("gpu-t4", "-c32 --mem=1G --gres=gpu:1", 2),
    ("gpu-t4", "-c1 --mem=96G --gres=gpu:1", 3),  # ... and 32 GiB
    ("gpu-t4", "-c1 --mem=1G", 0),  # a sixteenth
)


@contextmanager
def priced(prices: str = PRICES, policy: str = "") -> Iterator[FairbankServer]:
    """Start a bank with these prices and no others, and these lines in its policy."""
    with create_bank() as bank:
        before, table, after = (
            bank.config.read_text().partition("[clusters.local]")[0].partition("[policy]\n")
        )
        assert table, "the settings have a table of policy"
        bank.config.write_text(f"{before}{table}{policy}{after}{prices}")
        bank.start()
        yield bank
