"""`fairbank eff` on a host with Slurm's accounting."""

from __future__ import annotations

import json

import pytest

from fairbank.core.time import iso
from tests.slurm.commands.site import CommandSite
from tests.support.recorded_slurm import line

pytestmark = pytest.mark.slow


def test_used_processor_time_comes_from_accounting_if_the_bank_has_none(site: CommandSite) -> None:
    """The agent reports an end before Slurm has added up the processor time of the job.

    4 CPUs for 600 s are 2,400 s, for which 40 SU-minutes were charged; 1,801 s used are 75 %, so
    the idle quarter cost 10.
    """
    job = site.job(1)
    site.report(job)
    site.report(job, do="complete", end=job.end, elapsed=600, state="COMPLETED")
    submitted = iso(job.submitted)[:-1]
    site.slurm.set_output(
        "sacct-spent",
        line(1, submitted, "0:0", "30:00.500") + line("1.batch", submitted, "0:0", "1"),
    )
    (row,) = json.loads(site.output("eff", "1", "--json"))["data"]
    figures = ("charged", "cpu_used", "cpu_given", "wasted")
    assert [row[name] for name in figures] == [40, 1_801, 2_400, 10]
    assert "not known" not in site.run("eff", "1", code=0).err
    site.slurm.remove_output("sacct-spent")
    without = site.run("eff", "1", "-v", code=0)
    assert "Slurm's accounting does not answer" in without.err
    assert "Used processor time not known: 1. For a job that Slurm ran, ask" in without.err


def test_job_that_accounting_does_not_know_is_not_looked_for_there_again(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job)
    site.report(job, do="complete", end=job.end, elapsed=600, state="COMPLETED")
    site.slurm.set_output("sacct-spent", "")
    notes = " ".join(site.run("eff", "1", code=0).err.split())
    assert "not known: 1. Slurm's accounting has none either." in notes


def test_unreadable_processor_time_is_named(site: CommandSite) -> None:
    job = site.job(1)
    site.report(job)
    site.report(job, do="complete", end=job.end, elapsed=600, state="COMPLETED")
    site.slurm.set_output("sacct-spent", line(1, iso(job.submitted)[:-1], "0:0", "long"))
    assert (
        "! not read: sacct, line 1, TotalCPU: 'long' is not a time"
        in site.run("eff", "1", code=0).err
    )


def test_node_that_is_missing_in_the_capacity_is_named(site: CommandSite) -> None:
    site.slurm.change_output("scontrol-show-node", "CPUTot=64", "CPUTot=many")
    result = site.run("report", "centre", code=0)
    assert "! not read: scontrol show node, line 1, CPUTot" in result.err


def test_resources_that_share_nodes_are_named(site: CommandSite) -> None:
    assert "in partitions of several" not in site.run("report", "centre", code=0).err
    site.slurm.change_output("scontrol-show-node", "Partitions=cpu", "Partitions=cpu,gpu")
    notes = " ".join(site.run("report", "centre", code=0).err.split())
    assert "! cpu, gpu: some nodes are in partitions of several of these." in notes


def test_utilisation_is_of_the_nodes_that_slurm_shows_if_the_settings_have_no_number(
    site: CommandSite,
) -> None:
    """Eight nodes of 64 processors and two of 48; four of them have 4 GPUs each."""
    totals = json.loads(site.output("report", "centre", "--json"))["totals"]
    assert (totals["cpus"], totals["gpus"]) == (8 * 64 + 2 * 48, 16)
    assert (totals["cpu_used_permille"], totals["gpu_used_permille"]) == (0, 0)
