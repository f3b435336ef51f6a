"""Settings that `fairbank init` writes: they are read back for any name, and mistakes are reported
with their place.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.policy import GrantCategory
from fairbank.cluster.allocated_tres import Memory, MemoryUnit, NodeSize
from fairbank.cluster.partition import Partition
from fairbank.core.errors import InvalidInput
from fairbank.service.settings import read_settings
from fairbank.setup.init import settings_text

WRITTEN = settings_text(Path("/srv"), "memory:")

names = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "fairbank.toml"


@given(names, names)
def test_settings_written_by_init_are_read_back(file: Path, folder: str, url: str) -> None:
    file.write_text(settings_text(Path("/") / folder, url), encoding="utf-8", newline="")
    settings = read_settings(file)
    assert (settings.store.url, settings.secret_file) == (url, f"{Path('/') / folder}/secret")


def test_name_that_is_not_utf8_is_reported() -> None:
    with pytest.raises(InvalidInput) as error:
        settings_text(Path("/srv/\udcff"), "memory:")
    assert error.value.field == "DIRECTORY"


def test_policy_value_out_of_range_is_reported_with_its_place(file: Path) -> None:
    file.write_text(WRITTEN.replace("[policy]", "[policy]\nhold_grace_seconds = 0"))
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert error.value.field == "policy.hold_grace_seconds"


def test_free_states_must_be_final_job_states(file: Path) -> None:
    """A misspelt state would silently charge every such job."""
    policy = '[policy]\nfree_states = ["NODE_FAIL", "NODEFAIL"]'
    file.write_text(WRITTEN.replace("[policy]", policy))
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert (error.value.field or "").startswith("policy.free_states[")
    assert '"NODEFAIL", not an accepted value' in error.value.message
    assert (error.value.remedy or "").startswith("one of: BOOT_FAIL, CANCELLED, COMPLETED, ")
    file.write_text(WRITTEN.replace("[policy]", policy.replace("NODEFAIL", "DEADLINE")))
    assert read_settings(file).policy.free_states == {"NODE_FAIL", "DEADLINE"}


@pytest.mark.parametrize(
    ("lines", "field", "remedy"),
    [
        (
            '[clusters.other.partitions.gpu]\nweights = "CPU=1"',
            "clusters.other.partitions.gpu.resource",
            "add it",
        ),
        (
            "[clusters.other.partitions.gpu]\nresource = 5",
            "clusters.other.partitions.gpu.resource",
            "accepted: text",
        ),
        (
            '[clusters.other]\nadding = "max"',
            "clusters.other.adding",
            "one of: sum, max_tres, max_tres_gres",
        ),
        (
            "[clusters.other]\nagent = [5]",
            "clusters.other.agent",
            "there are: partitions, qos_factors, qos_resources, adding, agents, capacity",
        ),
        (
            "[clusters.other]\nagents = [-5]",
            "clusters.other.agents[0]",
            "accepted: whole number from 0 to 4294967294",
        ),
        ("[clusters]\nother = 5", "clusters.other", "accepted: table"),
        ("[policy.categories.big]\nprice = 5", "policy.categories.big.price", "there are: purpose"),
        (
            "[policy.categories.big]\nlongest_days = 0",
            "policy.categories.big.longest_days",
            "accepted: whole number from 1 to 36600",
        ),
        (
            "[policy.categories.big]\nresources = {cpu = {lowest = -1}}",
            "policy.categories.big.resources.cpu.lowest",
            "accepted: whole number from 0 to ",
        ),
        (
            "[policy.categories.big]\nresources = {cpu = {lowest = 5, highest = 4}}",
            "policy.categories.big.resources.cpu.highest",
            "5 or more; or leave it out for any amount",
        ),
        *(
            (
                f"[policy.categories.big]\ngranters = [{uid}]",
                "policy.categories.big.granters[0]",
                "accepted: whole number from 0 to 4294967294",
            )
            for uid in ("-5", "4294967295", "2.5", "nan", "'root'")
        ),
        (
            "[policy.categories.big]\ngranters = 5",
            "policy.categories.big.granters",
            "accepted: list of whole numbers from 0 to 4294967294",
        ),
        (
            "[policy.categories.big]\nresources = 'cpu'",
            "policy.categories.big.resources",
            "accepted: tables by name",
        ),
        ("[policy.categories]\nBig = {}", "policy.categories.Big", "a lower-case letter, then"),
        ("[policy.categories]\nbig = {purpose = 5}", "policy.categories.big.purpose", "text"),
        (
            "[policy.categories]\nbig = {purpose = '''a\nb'''}",
            "policy.categories.big.purpose",
            "one",
        ),
        (
            "[policy.categories]\nbig = {resources = {CPU = {}}}",
            "policy.categories.big.resources.CPU",
            "a lower-case letter, then",
        ),
    ],
)
def test_invalid_setting_of_a_named_table_is_named(
    file: Path, lines: str, field: str, remedy: str
) -> None:
    written = WRITTEN
    if lines.startswith("[clusters]"):
        written = written.partition("[clusters")[0]
    file.write_text(f"{written}\n{lines}\n")
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert (error.value.field, remedy in (error.value.remedy or "")) == (field, True)


@pytest.mark.parametrize("table", ["", "[policy.categories]"])
def test_settings_without_categories_have_two(file: Path, table: str) -> None:
    """So a typing error creates none, and the default and the imports have theirs."""
    file.write_text(f"{WRITTEN}\n{table}\n")
    assert read_settings(file).policy.categories == {
        "research": GrantCategory(),
        "history": GrantCategory(),
    }


def test_category_without_resources_grants_any(file: Path) -> None:
    file.write_text(f"{WRITTEN}\n[policy.categories.big]\nresources = {{}}\n")
    assert read_settings(file).policy.categories == {"big": GrantCategory()}


def test_visible_jobs_are_set_for_the_server(file: Path) -> None:
    written = WRITTEN
    for line, expected in (("", "project"), ('visible_jobs = "own"', "own")):
        file.write_text(written.replace("[server]", f"[server]\n{line}"))
        assert read_settings(file).staff_members().visible_jobs.value == expected
    file.write_text(written.replace("[server]", '[server]\nvisible_jobs = "none"'))
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert (error.value.field, error.value.remedy) == (
        "server.visible_jobs",
        "one of: own, project, all",
    )


def test_settings_of_an_older_version_are_refused_as_such(file: Path) -> None:
    file.write_text(
        """\
secret_file = "/srv/fairbank/secret"

[store]
url = "sqlite:////srv/fairbank/books.sqlite"

[server]
socket = "/srv/fairbank/fairbank.sock"
counter = "threads"
"""
    )
    message = "the file is of an older version: there is no setting server.counter any more"
    with pytest.raises(InvalidInput, match=message) as error:
        read_settings(file)
    assert error.value.remedy == "rename it to write_queue"


@pytest.mark.parametrize(
    ("line", "field", "remedy"),
    [
        ('journal = "delete"', "store.journal", "one of: truncate, wal"),
        ("port = 0", "server.port", "accepted: whole number from 1 to 65535"),
        ('munge_plain = "yes"', "server.munge_plain", "accepted: true or false"),
        ("munge_plain = 1", "server.munge_plain", "accepted: true or false"),
        # An empty host would listen on all addresses.
        ('host = ""', "server.host", "accepted: one word of printable ASCII characters"),
        ('host = "::1\\n"', "server.host", "accepted: one word of printable ASCII characters"),
        ('name = ""', "server.name", "accepted: one word of printable ASCII characters"),
        ('name = "bank\\n"', "server.name", "accepted: one word of printable ASCII characters"),
        (
            'name = "bank\\r\\nX: 1"',
            "server.name",
            "accepted: one word of printable ASCII characters",
        ),
    ],
)
def test_value_out_of_range_is_refused_with_the_range(
    file: Path, line: str, field: str, remedy: str
) -> None:
    table = f"[{field.partition('.')[0]}]"
    text = WRITTEN.replace('name = "fairbank"', "")
    file.write_text(text.replace(table, f"{table}\n{line}"))
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert (error.value.field, error.value.remedy) == (field, remedy)


def test_settings_file_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="/dev/zero has more than 16 MiB"):
        read_settings(Path("/dev/zero"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("cpu = 0", "out of range"),
        ("cpu = -1", "out of range"),
        ("cpu = nan", "not a number"),
        ("cpu = inf", "not a number"),
        ("cpu = 1e12", "out of range"),
        ('cpu = "many"', "not a number"),
        ('cpu = ""', "not a number"),
        ("disk = 5", "no partition or QOS of the cluster bills 'disk'"),
    ],
)
def test_capacity_is_a_number_of_a_billed_resource(file: Path, value: str, message: str) -> None:
    text = WRITTEN
    file.write_text(f"{text}\n[clusters.local.capacity]\n{value}\n")
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert message in error.value.message
    assert error.value.field == f"clusters.local.capacity.{value.split()[0]}"
    file.write_text(f"{text}\n[clusters.local.capacity]\ncpu = 2048\ngpu = 0.5\n")
    capacity = read_settings(file).cluster_map()["local"].capacity
    assert capacity == {"cpu": 2048, "gpu": Fraction(1, 2)}
    qos = f"{text}\n[clusters.local.qos_resources]\ndebug = 'debug'\n"
    file.write_text(f"{qos}\n[clusters.local.capacity]\ndebug = 64\n")
    assert read_settings(file).cluster_map()["local"].capacity == {"debug": 64}


@pytest.mark.parametrize("line", ["cpus = 0", "cpus = 2.5", "gpus = -1", 'gpus = "4"'])
def test_size_of_a_cluster_is_a_whole_number(file: Path, line: str) -> None:
    text = WRITTEN.replace("[clusters.local]", "[clusters.local]\n{}")
    file.write_text(text.format(line))
    with pytest.raises(InvalidInput) as error:
        read_settings(file)
    assert error.value.field == f"clusters.local.{line.split()[0]}"
    file.write_text(text.format("cpus = 2048\ngpus = 0"))
    cluster = read_settings(file).cluster_map()["local"]
    assert (cluster.cpus, cluster.gpus) == (2048, 0)


def partition_with(file: Path, lines: str, of_cluster: str = "", *, weights: str = "") -> Partition:
    """Return partition cpu of the example with more weights, and more lines in its table and that
    of its cluster.
    """
    text = WRITTEN
    text = text.replace("[clusters.local]\n", f"[clusters.local]\n{of_cluster}\n")
    file.write_text(text.replace('Mem=0.5G"\n', f'Mem=0.5G{weights}"\n{lines}\n', 1))
    return read_settings(file).cluster_map()["local"].partitions["cpu"]


@pytest.mark.parametrize(
    ("lines", "of_cluster", "memory"),
    [
        ("", "", None),
        ('def_mem_per_cpu = "2G"', "", Memory(2_048, MemoryUnit.CPU)),
        ("def_mem_per_node = 0", "", Memory(0)),
        ("", "def_mem_per_cpu = 1000", Memory(1_000, MemoryUnit.CPU)),
        ('def_mem_per_node = "4000M"', "def_mem_per_cpu = 1000", Memory(4_000)),
    ],
)
def test_default_memory_of_a_partition_precedes_that_of_its_cluster(
    file: Path, lines: str, of_cluster: str, memory: Memory | None
) -> None:
    assert partition_with(file, lines, of_cluster).default_memory == memory


def test_size_of_nodes_is_read_in_units_of_slurm(file: Path) -> None:
    lines = 'node_cpus = 64\nnode_memory = "256G"\nnode_gres = "gpu:a100:3,gpu:1(S:0-1)"'
    gres = {"gres/gpu": 4, "gres/gpu:a100": 3}
    assert partition_with(file, lines).size == NodeSize(64, 262_144, gres)
    assert partition_with(file, 'node_memory = 8000\nnode_gres = ""').size == (
        NodeSize(None, 8_000, {})
    )
    assert partition_with(file, "").size == NodeSize()
    assert not partition_with(file, "").exclusive
    assert partition_with(file, "exclusive = true\nnode_cpus = 64").exclusive


def test_partition_of_whole_nodes_needs_the_size_of_its_nodes(file: Path) -> None:
    """Without it no quote has a price there, with --tres neither. Each remedy works."""

    def missing(lines: str, weights: str = "") -> str | None:
        with pytest.raises(InvalidInput, match="each job takes whole nodes there") as error:
            partition_with(file, f"exclusive = true\n{lines}", weights=weights)
        remedy = re.match(
            r"add it, such as ([^,]*),.* or remove exclusive", str(error.value.remedy)
        )
        assert remedy is not None
        added = f"exclusive = true\n{lines}\n{remedy[1]}"
        assert partition_with(file, added, weights=weights).exclusive
        assert not partition_with(file, lines, weights=weights).exclusive
        return error.value.field

    here, gpus = "clusters.local.partitions.cpu", ",GRES/gpu=1.0"
    assert missing("") == f"{here}.node_cpus"
    assert missing("node_cpus = 64", gpus) == f"{here}.node_gres"
    lines = 'exclusive = true\nnode_cpus = 64\nnode_gres = ""'
    assert partition_with(file, lines, weights=gpus).exclusive


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("node_cpus = 0", "from 1 to 2147483647"),
        ('node_cpus = "64"', "from 1 to 2147483647"),
        ('node_memory = "256X"', "16G or 4000M"),
        ('node_memory = ""', "16G or 4000M"),
        ("node_memory = -1", "from 0 to 2147483647 or text"),
        ("node_memory = nan", "or text"),
        ("node_memory = 0", "such as 256G"),
        ('node_memory = "999999999999T"', "at most 2147483647 MiB"),
        ('node_gres = "gpu:-1"', "gpu:v100:2"),
        ('def_mem_per_cpu = "1,5G"', "16G or 4000M"),
        ("def_mem_per_node = 1\ndef_mem_per_cpu = 1", "keep one of both"),
        ('exclusive = "yes"', "true or false"),
    ],
)
def test_invalid_size_of_nodes_is_refused_with_its_key(file: Path, line: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as error:
        partition_with(file, line)
    assert error.value.field == f"clusters.local.partitions.cpu.{line.split()[0]}"
    assert remedy in (error.value.remedy or "")


def test_default_partition_must_be_one_of_the_cluster(file: Path) -> None:
    partition_with(file, "", 'default_partition = "gpu"')
    assert read_settings(file).cluster_map()["local"].default_partition == "gpu"
    with pytest.raises(InvalidInput) as error:
        partition_with(file, "", 'default_partition = "nosuch"')
    assert error.value.field == "clusters.local.default_partition"
    assert error.value.remedy == "there are: cpu, gpu"
