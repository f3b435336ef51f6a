"""Price of a job as text: the lines of its bill, what they decide, and cheaper requests."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import TYPE_CHECKING

from fairbank.core.tres import parse_counts
from fairbank.core.units import exact_decimal
from fairbank.report.cells import plain
from fairbank.report.columns import Column, DisplayFormat, Row, su, text

if TYPE_CHECKING:
    from typing import Any

_FITS = {True: "yes", False: "no", None: "unknown"}
_SETS = {True: "yes", False: "no", None: ""}
COLUMNS = (
    Column("PARTITION", text("partition")),
    Column("TRES", text("what")),
    Column("COUNT", text("count"), right=True),
    Column("WEIGHT", text("weight"), right=True),
    Column("BILLED", text("weighted"), right=True),
    Column("SETS", lambda row, form: _SETS[row.get("counts")]),
    # Facts of the whole job, the same in each row of a partition.
    Column("SU", su("amount"), right=True),
    Column("TASKS", text("tasks"), right=True),
    Column("TOTAL", su("total"), right=True),
    Column("AVAILABLE", su("available"), right=True),
    Column("FITS", lambda row, form: _FITS[row["fits"]]),
)


def bill_rows(quote: Row) -> list[Row]:
    """Return a row for each line of the bill in each partition, with the facts of the whole job.

    A partition that prices nothing of the job has one row, without a TRES, for these facts.
    """
    return [
        {**line, **without_lines(priced), "tasks": quote["tasks"]}
        for priced in quote["partitions"]
        for line in priced["lines"] or [{}]
    ]


def without_lines(quote: Row) -> dict[str, Any]:
    """Return the facts of a quote without the lines of its bill."""
    return {key: value for key, value in quote.items() if key != "lines"}


def tres_in_words(tres: str) -> str:
    """Return TRES as `1 node, 8 cores, 64 GiB, 2 gpu`."""
    counts = parse_counts(tres)
    nodes, cpus, memory = (counts.get(name, Fraction(0)) for name in ("node", "cpu", "mem"))
    words = [f"{nodes} node{'s' * (nodes > 1)}", f"{cpus} core{'s' * (cpus > 1)}"]
    words += [f"{exact_decimal(round(memory / 1024, 3))} GiB"] if memory else []
    for name, count in counts.items():
        by_type = [number for other, number in counts.items() if other.startswith(f"{name}:")]
        if "/" in name and sum(by_type) != count:  # `2 gpu` is not named beside `2 gpu:v100`
            words.append(f"{count} {name.removeprefix('gres/')}")
    return ", ".join(words)


def price_range(quote: Row, form: DisplayFormat) -> str:
    """Return the price of all tasks in each partition, and what that means."""
    several = len({priced["resource"] for priced in quote["partitions"]}) > 1
    prices = ", ".join(
        f"{priced['partition']} {form.su_text(priced['total'])}"
        + (f" of {priced['resource']}" if several else "")
        for priced in quote["partitions"]
    )
    return f"{prices}; held and charged in the one where it starts"


def array_text(quote: Row) -> str:
    """Return the number of tasks of an array; empty for a single job."""
    return f", array of {quote['tasks']:,} tasks" if quote["tasks"] > 1 else ""


def verdict(quote: Row, form: DisplayFormat, unread: list[str]) -> str:
    """Return whether the job fits, and why not.

    Args:
        quote: the quote, a row of `/quote`.
        form: format of amounts and times.
        unread: options that are not priced.
    """
    if not quote["reason"]:
        return "enough for what is priced" if unread else "fits"
    detail = form.sentence(quote["detail"].removesuffix("."))
    return f"{detail}, and let through" if quote["fits"] else f"does not fit: {detail}"


def bill_lines(quote: Row) -> list[tuple[str, str]]:
    """Return the lines of the bill: label and text."""
    some = not all(line["counts"] for line in quote["lines"])
    lines = []
    for line in quote["lines"]:
        name, count, weight = _in_gibibytes(line)
        sets = "   <- sets the price" if some and line["counts"] else ""
        lines.append((name, f"{count} x {weight} = {_short(Fraction(line['weighted']))}{sets}"))
    factor = Fraction(quote["factor"])
    times = f" x {_short(factor)} (QOS)" if factor != 1 else ""
    return [*lines, ("billed per hour", f"{_short(Fraction(quote['billing']))}{times} SU")]


def _in_gibibytes(line: Row) -> tuple[str, str, str]:
    count, weight = Fraction(line["count"]), Fraction(line["weight"])
    if line["what"] == "mem":
        return "mem, GiB", _short(count / 1024), _short(weight * 1024)
    return str(line["what"]), _short(count), _short(weight)


def _short(number: Fraction) -> str:
    """Return the number with at most six decimals, and commas between thousands."""
    whole, point, decimals = exact_decimal(round(number, 6)).partition(".")
    return f"{int(whole):,}{point}{decimals}"


_CHANGES = {
    "mem": "less memory, if it is enough: --mem={value}",
    "nodes": "fewer nodes, of the same size: {value}",
    "partition": "only one partition: -p {value}",
    "qos": "another QOS, if you may use it: -q {value}",
    "time_limit": "a shorter time limit: -t {value}",
}


def cheaper_text(change: Row, form: DisplayFormat) -> str:
    """Return the change with the price of the job then."""
    value = shlex.quote(plain(change["value"]))
    return f"{_CHANGES[change['change']].format(value=value)} ({form.su_text(change['total'])})"
