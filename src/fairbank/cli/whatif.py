"""`fairbank whatif`: what would have become of a recorded workload if something had been otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.granting import granting_of
from fairbank.cli.otherwise import Asked, add_question, asked_of
from fairbank.cli.outcomes import left_anew, notes_of, refused_of, remarks_of, row_of
from fairbank.cli.output import Listing, show, shown_columns
from fairbank.cli.progress import Stages, add_progress
from fairbank.cli.simulated import Terms
from fairbank.core.time import show_duration
from fairbank.report.cells import counted, plain
from fairbank.report.what_if import COLUMNS, MeasuredPair, measure_rows, table_rows

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser
    from fairbank.cli.simulated import Answer, Pair


def add(parser: Parser) -> None:
    add_question(parser)
    add_progress(parser)


def run(desk: Desk, options: Namespace) -> int:
    if shown_columns(desk, COLUMNS):
        return 0
    asked = asked_of(options)
    with Stages(options) as stages:
        terms = Terms(options.procs, options.shares, options.by, granting_of(options))
        answer = desk.works.questions.what_if(options.trace, asked, terms, progress=stages)
    tell(desk, asked, answer)
    return 0


def tell(desk: Desk, asked: Asked, answer: Answer) -> None:
    """The measures beside each other, what was changed, and what was left out."""
    two, copies = _rows(answer.plain), [_rows(each) for each in answer.copies]
    for_people = desk.options.form is None and not desk.options.format
    changes = changes_of(asked, answer)
    more = {
        "recorded": row_of(answer.plain.recorded, exactly=False),
        "changed": row_of(answer.plain.changed, exactly=False),
        "changes": changes,
        "copies": len(copies),
        "seed": asked.seed if copies else None,
    }
    notes = [f"changed: {each}" for each in changes] + notes_of(answer.plain.recorded)
    notes += left_anew(answer.plain.recorded, answer.plain.changed) + remarks_of(
        (answer.plain.recorded, answer.plain.changed)
    )
    notes += refused_of({"as recorded": answer.plain.recorded, "changed": answer.plain.changed})
    if copies:
        notes.append(
            f"means over {len(copies)} shaken copies with their 95 % confidence intervals; differences are taken copy by copy"
        )
    caption = f"{two.recorded['jobs']:,} jobs as recorded, {two.changed['jobs']:,} changed"
    rows = table_rows(two, copies) if for_people else measure_rows(two, copies)
    if not two.recorded["jobs"]:
        rows = []
    empty = "No job of this trace can be simulated."
    show(
        desk,
        Listing(
            "fairbank.whatif/1", COLUMNS, rows, caption=caption, notes=notes, more=more, empty=empty
        ),
    )


def _rows(pair: Pair) -> MeasuredPair:
    return MeasuredPair(row_of(pair.recorded, exactly=False), row_of(pair.changed, exactly=False))


def changes_of(asked: Asked, answer: Answer) -> list[str]:
    """Each change in words, with how many jobs it was about."""
    before, after, met = answer.plain.recorded, answer.plain.changed, answer.met
    said = []
    if before.policy != after.policy:
        said.append(f"policy {plain(after.policy)} instead of {plain(before.policy)}")
    if before.processors != after.processors:
        said.append(f"{counted(after.processors, 'processor')} instead of {before.processors:,}")
    said += [
        f"without user {plain(each)} ({counted(met.users[each], 'job')})" for each in asked.users
    ]
    said += [
        f"without group {plain(each)} ({counted(met.groups[each], 'job')})" for each in asked.groups
    ]
    how = []
    if asked.size is not None:
        how.append(f"on {counted(asked.size, 'processor')}")
    if asked.limit is not None:
        how.append(f"for at most {show_duration(asked.limit)}")
    said += [f"job {each} {' '.join(how)}" for each in asked.jobs]
    if asked.limits_percent != 100:
        said.append(
            f"time limits {asked.limits_percent} % of what they were, but none shorter than the run"
        )
    return said


COMMAND = Command(
    "what would have become of a recorded workload if something had been otherwise",
    (
        "fairbank whatif month.swf.gz --add-procs 64",
        "fairbank whatif month.swf.gz --drop-user 17 --shaken 10            with 95 % confidence intervals",
        "fairbank whatif month.swf.gz --policy slurm --to-policy fairer.toml",
    ),
    add,
    run,
    asks=False,
)
