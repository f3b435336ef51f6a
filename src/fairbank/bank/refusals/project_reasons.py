"""Reasons that refuse changes of projects, their members, and tokens."""

from __future__ import annotations

from collections.abc import Mapping

from fairbank.bank.refusals.reason_info import Case, Detail, ReasonInfo
from fairbank.core.errors import RefusalKind

PROJECT_REASONS: Mapping[str, ReasonInfo] = {
    "UNKNOWN_PROJECT": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "there is no such project",
        "No project of the bank has this number, account or group.",
        ("parent", "account", "project", "entry"),
        "list them: fairbank project list",
        details={
            Detail.UNKNOWN_PARENT: Case("parent {project}"),
            Detail.UNKNOWN_ACCOUNT: Case(
                "no project has the account {account!r}",
                "use the right account, or have its project created, by staff: fairbank project"
                " create GROUP -A {account:word}",
            ),
        },
    ),
    "NOT_A_MEMBER": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "this user is not in the bank's list of members of the project",
        "Only a member in the bank's own list can be removed; a member of the Unix group is"
        " removed in Unix.",
        ("uid", "entry"),
        "list them: fairbank project users {project}; a member of the Unix group is removed there",
        specific="user {owner} in project {project}",
    ),
    "UNKNOWN_TOKEN": ReasonInfo(
        RefusalKind.NOT_FOUND,
        "there is no such valid token",
        "The token never existed, was revoked, or has expired.",
        ("token",),
        "list them: fairbank token list",
    ),
    "TOKEN_TAKEN": ReasonInfo(
        RefusalKind.CONFLICT,
        "this secret belongs to another token",
        "Two tokens with one secret could not be distinguished.",
        ("label",),
        "make a new secret",
    ),
    "ROLE_ABOVE": ReasonInfo(
        RefusalKind.FORBIDDEN,
        "users manage only roles below their own, and cap only users with such roles",
        "A PI manages coordinators and members, a coordinator manages members; staff manage all.",
        ("role", "uid", "entry"),
        "ask a superuser",
    ),
    "PROJECT_IN_USE": ReasonInfo(
        RefusalKind.CONFLICT,
        "the project is still in use",
        "A project can be removed only if it has no child projects, its allocations are over and"
        " it has no holds.",
        ("project",),
        "end its allocations first: fairbank alloc end {allocation} --reason '...'; and let its"
        " runs end",
        details={
            Detail.ONE_CHILD: Case(
                "its child project is {projects}",
                "remove or move it first: fairbank project remove PROJECT; or fairbank project set"
                " PROJECT --no-parent, or --parent ANOTHER",
            ),
            Detail.CHILDREN: Case(
                "its child projects are {projects}",
                "remove or move them first: fairbank project remove PROJECT; or fairbank project"
                " set PROJECT --no-parent, or --parent ANOTHER",
            ),
            Detail.MANY_CHILDREN: Case(
                "its child projects are {projects} and {more} more",
                "remove or move them first: fairbank project remove PROJECT; or fairbank project"
                " set PROJECT --no-parent, or --parent ANOTHER",
            ),
            Detail.ALLOCATION_OPEN: Case("allocation {allocation} is {state}"),
            Detail.ALLOCATION_IN_USE: Case(
                "allocation {allocation} is in use by open runs",
                "let its runs end first: fairbank jobs -a -A ACCOUNT",
            ),
            Detail.RUN_OPEN: Case(
                "run {run} is open", "let its runs end first: fairbank jobs -a -A ACCOUNT"
            ),
        },
    ),
    "PROJECT_REMOVED": ReasonInfo(
        RefusalKind.CONFLICT,
        "the project was removed",
        "A removed project keeps its journal for staff to read. It gets no jobs, no allocation, no"
        " credit and no members, and no project is restored below it. Charges and refunds of its"
        " earlier runs are still booked.",
        ("account", "parent", "project", "allocation", "entry"),
        "restore it first, by staff: fairbank project set {project} --restore",
        details={
            Detail.PARENT_REMOVED: Case("parent {project}"),
            Detail.PARENT_STILL_REMOVED: Case("project {project}, the parent of project {child}"),
        },
    ),
    "PARENT_CYCLE": ReasonInfo(
        RefusalKind.CONFLICT,
        "a project cannot be its own parent, nor below itself",
        "Parents share credit with the projects below them; a cycle of parents would have no top.",
        ("parent",),
        "name another parent",
        details={Detail.OTHER_PARENT: Case("project {parent} is project {project} or below it")},
    ),
    "IDENTITY_LOCKED": ReasonInfo(
        RefusalKind.CONFLICT,
        "the gid and account of a project that ever had an allocation or run do not change",
        "Ends of runs may arrive late with the old account, and users stay in the group: the next"
        " project with that account would get both. The name of the group and the parent may"
        " change.",
        ("gid", "account"),
        "create another project with an allocation, and transfer the credit: fairbank project"
        " create GROUP -A ACCOUNT; fairbank transfer ALLOC ALLOC AMOUNT --reason '...'",
        details={Detail.SAME_NAMES: Case("project {project} keeps {names}")},
    ),
    "EXISTS": ReasonInfo(
        RefusalKind.CONFLICT,
        "a project with this group, gid or account exists with other content",
        "Group, gid and account each belong to one project. The very same project again would be"
        " no conflict.",
        ("gname", "gid", "account"),
        "check the project that has it: fairbank project list",
        details={
            Detail.SAME_NAMES: Case("project {project} has {names}"),
            Detail.OTHER_PARENT: Case("project {project} has {names}, but another parent"),
            Detail.REMOVED: Case(
                "project {project}, which was removed, has {names}",
                "restore it first, by staff: fairbank project set {project} --restore",
            ),
        },
    ),
}
