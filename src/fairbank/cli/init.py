"""`fairbank init`: makes a bank on this host."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser


def add(parser: Parser) -> None:
    parser.add_argument(
        "directory",
        metavar="FOLDER",
        nargs="?",
        help="where settings, secret and store go (usual: ~/.local/state/fairbank); books of an older Fairbank whose "
        "fairbank.toml is there are migrated: stop the servers and make a backup first",
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="sqlite:///FILE (usual: in FOLDER) or postgresql://HOST/DATABASE",
    )


def run(desk: Desk, options: Namespace) -> int:
    for line in desk.works.init(options.directory, options.store):
        desk.say(plain(line))
    where = f" --config {quote(f'{options.directory}/fairbank.toml')}" if options.directory else ""
    desk.note(f"Look through the settings, then start the bank with: fairbank serve{where}")
    return 0


COMMAND = Command(
    "make a bank on this host: settings, secret, store; or migrate the books of an older Fairbank",
    (
        "fairbank init                              a bank of one's own",
        "fairbank init /etc/fairbank                make a bank there, or migrate that which is there",
        "fairbank init /etc/fairbank --store postgresql:///fairbank",
    ),
    add,
    run,
    reads=False,
    asks=False,
)


def add_config(parser: Parser) -> None:
    """What the commands on the bank's own host share."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the bank's settings (FAIRBANK_CONFIG; usual: where fairbank init put them)",
    )
