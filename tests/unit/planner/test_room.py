"""How much a plan may hold: what does not fit is refused, by name, before anything is made of it."""

import json
import tracemalloc

import pytest

from keyplane.planner import room, sizes
from tests.unit.planner import fleets as f
from tests.unit.planner.test_warm import HERE, Followed, setting

PEERS = """
[roles.main.uses.peers]
interface = "store"
reach = "all"
"""
READERS = f.READER.replace('interface = "store"', 'interface = "store"\nreach = "all"').replace(
    "results.store.url", "results.store.*.url"
)


def many(count: int) -> str:
    return f.machines(*(f"m{number:04}" for number in range(count)))


@pytest.mark.parametrize("peers", ["its own", "another's"])
def test_a_set_with_more_edges_than_a_plan_holds_is_bound_to_nothing(peers: str) -> None:
    """1,001 entries that each read 1,001."""
    fleet = many(1001) + f.instance("db", "db")
    modules = {"db": f.PROVIDER + PEERS}
    reader = "db:main"
    if peers == "another's":
        fleet += f.instance("app", "app")
        modules = {"db": f.PROVIDER, "app": READERS}
        reader = "app:main"
    made = f.plan_of(fleet, modules, f.STORE)
    row = f.row(made, "count-out-of-bounds")
    assert (row.subject, row.severity) == (reader, "error")
    assert "1001 entries" in row.message
    assert "1002001 edges" in row.message
    assert f"{room.EDGES_MAX} edges" in row.message
    assert (made.edges, len(made.entries)) == ([], 1001 * len(modules))


@pytest.mark.slow
def test_what_is_refused_takes_no_memory() -> None:
    """The edges of so many would take 300 MiB."""
    tracemalloc.start()
    try:
        f.plan_of(many(2000) + f.instance("db", "db"), {"db": f.PROVIDER + PEERS}, f.STORE)
        assert tracemalloc.get_traced_memory()[1] < 60 * 2**20
    finally:
        tracemalloc.stop()


def test_what_fits_is_bound_beside_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyplane.planner.bind.EDGES_MAX", 5)
    fleet = HERE + f.instance("db", "db") + f.instance("all", "all") + f.instance("two", "all")
    made = f.plan_of(fleet, {"db": f.PROVIDER, "all": READERS}, f.STORE)
    assert f.row(made, "count-out-of-bounds").subject == "two:main"
    assert [edge.consumer for edge in made.edges] == ["all:main@alpha"] * 2 + ["all:main@beta"] * 2


def test_edges_of_implied_entries_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyplane.planner.bind.EDGES_MAX", 1)
    beside = f.PROVIDER.replace('scope = "mesh"', 'scope = "machine"')
    made = f.plan_of(HERE + f.instance("app", "app"), {"db": beside, "app": f.READER}, f.STORE)
    assert f.row(made, "count-out-of-bounds").subject == "app:main"
    assert made.edges == []


def test_a_role_with_more_entries_and_listens_than_a_plan_holds_is_not_placed() -> None:
    listens = "".join(f'listens.l{number} = {{ protocol = "tcp" }}\n' for number in range(9999))
    module = f"{f.UNIT}[roles.main]\n{listens}"
    made = f.plan_of(many(101) + f.instance("db", "db"), {"db": module})
    row = f.row(made, "placement-short")
    assert (row.subject, row.severity) == ("db:main", "error")
    assert "101 entries and 1009899 listens" in row.message
    assert f"{room.ENTRIES_MAX} entries and listens" in row.message
    assert made.entries == {}


def test_implied_entries_take_room_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "ENTRIES_MAX", 3)
    beside = f.PROVIDER.replace('scope = "mesh"', 'scope = "machine"')
    made = f.plan_of(HERE + f.instance("app", "app"), {"db": beside, "app": f.READER}, f.STORE)
    assert f.row(made, "placement-short").subject == "db:main"
    assert sorted(made.entries) == ["app:main@alpha", "app:main@beta", "db:main@alpha"]


def test_roles_that_are_too_much_together_run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "PLAN_MAX", 100)
    fleet = HERE + f.instance("app-a", "app") + f.instance("app-b", "app")
    made = f.plan_of(fleet, {"app": f'{f.UNIT}env = {{ X = "{"x" * 30}" }}\n'})
    row = f.row(made, "wrong-type")
    assert row.subject == "app-b:main"
    assert "characters of text" in row.message
    assert made.entries["app-b:main@alpha"].units == {}
    assert made.entries["app-a:main@alpha"].units != {}


def test_names_count_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "ROLE_MAX", 1000)
    long = "".join(f'env.V{number:0100} = "" \n' for number in range(20))
    made = f.plan_of(HERE + f.instance("app", "app"), {"app": f.UNIT + long})
    assert f.row(made, "wrong-type").subject == "app:main"


def test_a_request_counts_for_each_that_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contributions file of each of them says it."""
    monkeypatch.setattr(sizes, "ROLE_MAX", 1500)
    store = f'{f.STORE}[store.request]\nname = "string"\n'
    asks = READERS.replace('reach = "all"', f'reach = "all"\nrequest = {{ name = "{"n" * 400}" }}')
    fleet = HERE + f.instance("db", "db") + f.instance("app", "app", "alpha")
    assert f.plan_of(fleet, {"db": f.PROVIDER, "app": asks}, store).diagnostics == []
    fleet = HERE + f.instance("db", "db") + f.instance("app", "app")
    made = f.plan_of(fleet, {"db": f.PROVIDER, "app": asks}, store)
    assert f.row(made, "wrong-type").subject == "app:main"


def test_a_kept_plan_grows_over_the_most_and_back_as_one_made_as_a_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sizes, "PLAN_MAX", 220)
    module = (
        f'{f.UNIT}env = {{ X = "${{settings.x}}" }}\n[roles.main.settings.x]\ntype = "string"\n'
    )
    given = "".join(
        f.instance(name, "app", more=f"settings.main.x = {json.dumps('x')}")
        for name in ("app-a", "app-b")
    )
    followed = Followed(HERE + given, {"app": module})
    assert followed.planner.result.plan.diagnostics == []
    for long in ("x" * 90, "x" * 90 + "y", "x", "z"):
        followed.update(setting("app-a", long))
        refused = f.rows(followed.planner.result.plan)
        assert refused == ([("wrong-type", "app-b:main")] if len(long) > 1 else [])
