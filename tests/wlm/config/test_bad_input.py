"""Bad input of each kind: the message names file, line and keyword, the remedy the form."""

from __future__ import annotations

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.wlm.config.loader import load_settings
from fairbank.wlm.config.machine import NODES_MAX
from tests.wlm.config.files import (
    CONF,
    MACHINE,
    MACHINE_TOML,
    TOML,
    conf,
    conf_error,
    error,
    toml,
    toml_error,
)

WHOLE = "whole number of seconds from 0 to 65533"
BAD_LINES = [
    ("unit", "KillWait=30s", "KillWait: '30s' is not a whole number", WHOLE),
    ("negative", "KillWait=-1", "KillWait: '-1' is not a whole number", WHOLE),
    ("nan", "KillWait=nan", "KillWait: 'nan' is not a whole number", WHOLE),
    ("enormous", f"KillWait={'9' * 50}", "KillWait: '99999", WHOLE),
    ("other digits", "KillWait=\uff13", "KillWait: '\\uff13' is not a whole number", WHOLE),
    ("empty", "KillWait=", "'KillWait=': is not KEYWORD=VALUE", "write KEYWORD=VALUE"),
    ("quoted empty", 'KillWait=""', "KillWait: '' is not a whole number", WHOLE),
    ("open quote", 'KillWait="3', "KillWait: '\"3' is not a whole number", WHOLE),
    ("no value", "KillWait", "'KillWait': is not KEYWORD=VALUE", "write KEYWORD=VALUE"),
    ("rest", "KillWait=3 soon", "'soon': is not KEYWORD=VALUE", "write KEYWORD=VALUE"),
    ("added", "KillWait+=3", "'KillWait+=3': is not KEYWORD=VALUE", "write KEYWORD=VALUE"),
    ("unknown", "KilWait=3", "KilWait: is not a known keyword", "did you mean KillWait?"),
    ("unlike any", "Xyzzy=3", "Xyzzy: is not a known keyword", "remove it"),
    ("of a node", "CPUs=3", "CPUs: is not a keyword here", "begins with NodeName"),
    ("of no node", "NodeName=m KillWait=3", "KillWait: is not a keyword here", "a line of its own"),
    ("twice", "KillWait=3 KillWait=3", "KillWait: is given twice, first in", "give it once"),
    ("old name", "Shared=NO", "Shared: is not a keyword here", "PartitionName"),
    ("time", "PriorityMaxAge=7d", "PriorityMaxAge: '7d' is not a", "minutes, h:mm:ss"),
    ("long time", f"PriorityMaxAge={'9' * 20}", "PriorityMaxAge: '999", "minutes, h:mm:ss"),
    ("memory", "DefMemPerCPU=4P", "DefMemPerCPU: '4P' is not a size", "K, M, G or T"),
    ("much memory", "DefMemPerCPU=999999T", "DefMemPerCPU: '999999T' is too large", "2147483647"),
    ("word", "PreemptMode=PAUSE", "PreemptMode: 'PAUSE' is unknown", "OFF, CANCEL, REQUEUE"),
    ("refused", "PreemptMode=GANG", "PreemptMode: 'GANG' is not supported: ", "OFF, CANCEL"),
    ("sockets", "SelectTypeParameters=CR_Socket", "'CR_Socket' is not supported", "CR_Core"),
    ("mpi", "MpiDefault=pmix", "MpiDefault: 'pmix' is unknown", "one of none"),
    ("path", "Prolog=prolog.sh", "Prolog: 'prolog.sh' is not an absolute path", "absolute path"),
    ("weights", "PriorityWeightTRES=cpu", "'cpu' is not NAME=NUMBER", "TRES, such as"),
    ("parameter", "SchedulerParameters=bf_x", "'bf_x' is not a parameter", "such as bf_window"),
    ("bounds", "SchedulerParameters=bf_window=0", "0 is not a bf_window (a whole", "bf_window"),
    ("billing", "PriorityWeightTRES=billing=1", "billing has no weight", "TRES, such as"),
    ("flag", "PriorityFlags=MAX_FOO", "PriorityFlags: 'MAX_FOO' is unknown", "MAX_TRES"),
    ("codes", "RequeueExit=1-999", "RequeueExit: '1-999' is not a list", "from 0 to 255"),
    ("endless", "PriorityDecayHalfLife=0", "usage never fades", "PriorityUsageResetPeriod"),
    ("ids", "FirstJobId=9 MaxJobId=9", "FirstJobId 9 is not below MaxJobId 9", "a smaller"),
]  # fmt: skip
BAD_RECORDS = [
    ("no such node", "PartitionName=q Nodes=n[4-6]", "Nodes: there is no node n[5-6]", "NodeName"),
    ("no nodes", "PartitionName=q", "PartitionName: Nodes is missing", "Nodes=ALL"),
    ("second node", "NodeName=n[4-5]", f"NodeName: n4 is there twice, first in {CONF}, line 1", ""),
    ("second partition", "PartitionName=main Nodes=n1", "main is there twice", "name it once"),
    ("not first", "State=UP PartitionName=q", "State: is not a keyword here", "NodeName"),
    ("range", "NodeName=m[1-70000]", "NodeName: the range 1-70000 is too long", "hosts, such as"),
    ("open", "NodeName=m[1-", "NodeName: [ at place 2 of 'm[1-' is never closed", "hosts, such as"),
    ("many", "NodeName=m[1-65533]", f"NodeName: more than {NODES_MAX} nodes", "configure fewer"),
    ("cores", "NodeName=m CPUs=5 CoresPerSocket=4", "5 CPUs are not 4 cores", "CPUs=4"),
    ("cloud", "NodeName=m State=CLOUD", "State: 'CLOUD' is not supported", "UNKNOWN, IDLE"),
    ("license", "NodeName=m Gres=nic:2", "Gres: 'nic' is not supported", "GPUs, such as"),
    ("feature", "NodeName=m Feature=a&b", "Feature: 'a&b' is not a feature", "a word without"),
    ("most", "PartitionName=q Nodes=n1 MinNodes=4 MaxNodes=2", "MaxNodes: at most 2", "4 or more"),
    ("both", "PartitionName=q Nodes=n1 AllowQos=a DenyQos=b", "as AllowQos", "give it once"),
    ("count", "PartitionName=q Nodes=n1 OverSubscribe=NO:2", "'NO:2' is not a way", "FORCE"),
    ("zero", "PartitionName=q Nodes=n1 MaxTime=0", "MaxTime: '0' is not a", "UNLIMITED"),
    ("weights", "PartitionName=q Nodes=n1 TRESBillingWeights=x=1", "'x' is not a TRES", "cpu=1"),
    (
        "defaults",
        "PartitionName=q Nodes=n1 Default=YES\nPartitionName=r Nodes=n1 Default=YES",
        f"{CONF}, line 4, Default: q is the default partition already",
        "give one partition",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message", "remedy"), [row[1:] for row in BAD_LINES], ids=[row[0] for row in BAD_LINES]
)
def test_bad_line_is_named(line: str, message: str, remedy: str) -> None:
    bad = conf_error(f"# first\n{line}\n{MACHINE}")
    assert bad.message.startswith(f"{CONF}, line 2, ")
    assert message in bad.message
    assert remedy in (bad.remedy or "")
    assert bad.field


@pytest.mark.parametrize(
    ("line", "message", "remedy"),
    [row[1:] for row in BAD_RECORDS],
    ids=[row[0] for row in BAD_RECORDS],
)
def test_bad_node_or_partition_is_named(line: str, message: str, remedy: str) -> None:
    bad = conf_error(f"{MACHINE}{line}\n")
    assert bad.message.startswith((f"{CONF}, line 3, ", f"{CONF}, line 4, "))
    assert message in bad.message
    assert remedy in (bad.remedy or "")


LONG_TEXT = """[[nodes]]
node_name = "a"
reason = '''
[jobs]
kill_wait = 1
'''
[jobs]
kill_wait = "x"
"""
BAD_TABLES = [
    ("unit", "[jobs]\nkill_wait = '30s'", 2, "kill_wait: '30s' is not a whole number", WHOLE),
    ("negative", "[jobs]\n\nkill_wait = -1", 3, "kill_wait: '-1' is not", WHOLE),
    ("nan", "[jobs]\nkill_wait = nan", 2, "kill_wait: 'nan' is not a whole number", WHOLE),
    ("infinite", "[jobs]\nkill_wait = inf", 2, "kill_wait: 'inf' is not a whole number", WHOLE),
    ("fraction", "[jobs]\nkill_wait = 1.5", 2, "kill_wait: '1.5' is not a whole", WHOLE),
    ("enormous", f"[jobs]\nkill_wait = 0x{'f' * 5000}", 2, "kill_wait: is neither", WHOLE),
    ("empty", "[jobs]\nkill_wait = ''", 2, "kill_wait: '' is not a whole number", WHOLE),
    ("date", "[jobs]\nkill_wait = 2026-01-01", 2, "kill_wait: is neither text nor", WHOLE),
    ("table", "[jobs]\nkill_wait = {a = 1}", 2, "kill_wait: is neither text nor", WHOLE),
    ("lists", "[jobs]\nkill_wait = [[1]]", 2, "kill_wait: is neither text nor", WHOLE),
    ("unknown", "[jobs]\nkil_wait = 3", 2, "kil_wait: is not a known", "did you mean kill_wait?"),
    ("camel", "[jobs]\nKillWait = 3", 2, "KillWait: is not a known", "did you mean kill_wait?"),
    ("control", '[jobs]\n"\\u001b[2J" = 3', 1, "'\\x1b[2J': is not a known", "remove it"),
    ("elsewhere", "[cluster]\nkill_wait = 3", 2, "is not a keyword here", "it belongs in [jobs]"),
    ("prefix", "[cluster]\naccounting_storage_tres = 'x'", 2, "keyword here", "in [priority]"),
    ("top", "kill_wait = 3", 1, "is not a keyword here", "it belongs in [jobs]"),
    ("table name", "[jobz]\na = 3", 1, "jobz: is not a known keyword", "did you mean jobs?"),
    ("one table", "\n[[jobs]]\nkill_wait = 3", 2, "jobs: is another kind of", "write [jobs]"),
    ("many tables", "[qos]\nname = 'a'", 1, "qos: is another kind of table", "write [[qos]]"),
    ("mixed", "qos = [{name = 'a'}, 3]", 1, "qos: is not a list of tables", "[[qos]]"),
    ("text", LONG_TEXT, 8, "kill_wait: 'x' is not a whole number", WHOLE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "message", "remedy"),
    [row[1:] for row in BAD_TABLES],
    ids=[row[0] for row in BAD_TABLES],
)
def test_bad_key_is_named(text: str, line: int, message: str, remedy: str) -> None:
    bad = toml_error(f"{text}\n{MACHINE_TOML}")
    assert bad.message.startswith(f"{TOML}, line {line}, ")
    assert message in bad.message
    assert remedy in (bad.remedy or "")


def test_table_in_a_list_has_its_own_line() -> None:
    bad = toml_error(f"# [[nodes]]\n{MACHINE_TOML}\n[[nodes]]\nnode_name = 'x'\nweight = 'y'\n")
    assert bad.message.startswith(f"{TOML}, line 13, weight: 'y' is not a whole number")


def test_toml_that_gives_a_key_twice_is_refused_with_its_line() -> None:
    bad = toml_error("[jobs]\nkill_wait = 3\nkill_wait = 4\n")
    assert bad.message == f"{TOML} is not TOML: Cannot overwrite a value (at line 3, column 14)"


@pytest.mark.parametrize("name", [CONF, TOML])
def test_other_encodings_are_refused(name: str) -> None:
    for content in ("KillWait=3\n".encode("utf-16"), "# Müller\n".encode("latin-1")):
        bad = error(name, {name: content})
        assert "is not UTF-8: byte" in bad.message
        assert bad.remedy == "save it as text in UTF-8"


def test_byte_order_mark_and_line_ends_of_windows_do_not_count() -> None:
    lines = f"KillWait=3\n{MACHINE}"
    assert conf("\ufeff" + lines.replace("\n", "\r\n")) == conf(lines)
    tables = f"[jobs]\nkill_wait = 3\n{MACHINE_TOML}"
    assert toml("\ufeff" + tables.replace("\n", "\r\n")) == toml(tables) == conf(lines)


@pytest.mark.parametrize("name", [CONF, TOML])
def test_file_without_nodes_is_refused(name: str) -> None:
    bad = error(name, {name: ""})
    assert (bad.message, bad.field) == (f"{name}: there are no nodes", "nodes")


def test_missing_file_is_named() -> None:
    bad = error(CONF, {})
    assert bad.message == f"cannot read '{CONF}': No such file or directory"


def test_error_of_the_reader_is_that_of_the_file() -> None:
    """A reader refuses a device that has no end."""
    files = {TOML: 'slurm_conf = "zero"'}

    def read(name: str) -> bytes:
        if name in files:
            return files[name].encode()
        raise InvalidInput(f"{name} has more than 16 MiB", remedy="name a text file")

    with pytest.raises(InvalidInput, match="wlm.toml, line 1, slurm_conf: zero has more than 16"):
        load_settings(TOML, read)
