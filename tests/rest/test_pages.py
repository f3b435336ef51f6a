"""Long lists come in pages, which join without a gap."""

from __future__ import annotations

from tests.rest.reading import all_pages, data, ids_of
from tests.rest.world import AGENT, DAY, NOW, PI, SUPERUSER, World, report


def test_pages_follow_each_other(world: World) -> None:
    assert ids_of(all_pages(world, "/alloc", SUPERUSER, size=1)) == sorted(
        [world.own["allocation"], world.own["later"], world.foreign["allocation"], world.foreign["later"]]
    )


def test_a_statement_comes_in_pages_that_join(world: World) -> None:
    path = f"/alloc/{world.own['allocation']}/statement"
    first = world.ask("GET", f"{path}?limit=3", PI).json()
    second = world.ask("GET", f"{path}?limit=3&after={first['next']}", PI).json()
    assert second["data"]["opening"] == first["data"]["closing"]
    assert first["data"]["entries"] + second["data"]["entries"] == data(world, path)["entries"]


def test_lists_that_grow_with_a_project_come_in_pages(world: World) -> None:
    project, allocation = world.own["project"], world.own["allocation"]
    for uid in range(7):
        world.ask("PUT", f"/project/{project}/member/{uid}", PI, json={"role": "member"})
        world.ask("PUT", f"/alloc/{allocation}/cap/{uid}", PI, json={"cap": 5})
        world.token_number(PI)
        run = report(200 + uid, owner_uid=10_000 + uid, do="complete", end=NOW + uid * 40 * DAY, elapsed=600, state="COMPLETED")
        assert world.ask("POST", "/job", AGENT, json=run).status_code == 201
    for path, least in ((f"/project/{project}/member", 10), (f"/alloc/{allocation}/user", 15), ("/token", 7)):
        whole = data(world, path)
        assert len(whole) >= least
        assert all_pages(world, path) == whole
    for by in ("user", "day", "month", "partition", "allocation"):
        assert all_pages(world, f"/usage?by={by}") == data(world, f"/usage?by={by}")
    assert len(data(world, "/usage?by=day")) == 7
