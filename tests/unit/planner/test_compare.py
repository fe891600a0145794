"""What it takes to get from one plan to another."""

import msgspec

from keyplane.model.plan import Plan
from keyplane.planner import compare
from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta", "gamma", "delta")
SOLO = f.UNIT


def diff(old: f.PlanResult, new: f.PlanResult) -> compare.Diff:
    """Compared with and without the hashes that save time; it has to be the same."""
    found = compare.diff(old.plan, new.plan)
    assert found == compare.diff(
        old.plan, new.plan, old_digests=old.digests, new_digests=new.digests
    )
    read = [msgspec.json.decode(msgspec.json.encode(one.plan), type=Plan) for one in (old, new)]
    assert found == compare.diff(*read)
    return found


def solo(unit: str, fleet: str = "") -> f.PlanResult:
    placed = fleet or f.instance("solo", "solo", "alpha")
    return f.result_of(HERE + placed, {"solo": unit})


def test_live_fields_are_rewired_and_restart_nothing() -> None:
    old = solo(SOLO)
    for more in (
        'health = { tcp = "x:1" }',
        'restart = "no"',
        'stopTimeout = "20s"',
        'reload = { signal = "HUP" }',
        'handover = "start-first"',
        'replaces = "older"',
    ):
        found = diff(old, solo(SOLO + more))
        assert found.rewire == ["solo:main@alpha"], more
        assert found.activate == found.reload == found.untouched == []


def test_a_duration_that_says_the_same_is_no_difference() -> None:
    found = diff(solo(SOLO + 'stopTimeout = "60s"'), solo(SOLO + 'stopTimeout = "1m"'))
    assert found.untouched == ["solo:main@alpha"]
    assert (
        solo(SOLO + 'stopTimeout = "60s"')
        .plan.entries["solo:main@alpha"]
        .units["main"]
        .stop_timeout
        == "1m"
    )


def test_config_and_live_together_are_a_reload() -> None:
    more = 'configData."/etc/x" = { text = "1" }\n'
    new = more.replace('"1"', '"2"') + 'restart = "no"\n'
    assert diff(solo(SOLO + more), solo(SOLO + new)).reload == ["solo:main@alpha"]


def test_moves_of_one_role_are_sorted_and_paired() -> None:
    old = solo(SOLO, f.instance("solo", "solo", "alpha", "gamma", "beta"))
    new = solo(SOLO, f.instance("solo", "solo", "delta", "gamma"))
    found = diff(old, new)
    assert [(move.entry, move.from_, move.to) for move in found.moves] == [
        ("solo:main", "alpha", "delta")
    ]
    assert found.deactivate == ["solo:main@alpha", "solo:main@beta"]
    assert found.activate == ["solo:main@delta"]
    assert (found.why, found.units) == ({}, {})


def test_why_names_each_input_that_moved() -> None:
    def role(**said: str) -> str:
        parts = {
            "unit": f.UNIT,
            "listens": '[roles.main.listens]\nweb = { protocol = "tcp", port = 80 }\n',
            "volumes": '[roles.main.volumes.data]\npath = "/data"\n',
            "secrets": "",
            "resources": "",
        } | said
        return "".join(parts.values())

    old = solo(role())
    for change, reasons in (
        ({"unit": f.UNIT.replace('"run"', '"walk"')}, ["closure.main.command"]),
        ({"unit": f.UNIT + 'env.A = "1"\n'}, ["env.main.A"]),
        ({"unit": f.UNIT + 'user = "me"\nlimits = { tasks = 5 }\n'}, ["closure.main.limits", "closure.main.user"]),
        ({"listens": '[roles.main.listens]\nweb = { protocol = "tcp", port = 81 }\n'}, ["closure.listens.web"]),
        ({"volumes": '[roles.main.volumes.data]\npath = "/other"\n'}, ["closure.volumes.data"]),
        ({"secrets": "[roles.main.secrets.s]\n"}, ["closure.secrets.s"]),
        ({"resources": '[roles.main.resources.d]\ntype = "directory"\npath = "/d"\n'}, ["closure.resources.d"]),
    ):  # fmt: skip
        found = diff(old, solo(role(**change)))
        assert found.why == {"solo:main@alpha": reasons}
        restarts = ["main"] if "unit" in change else []
        assert found.units == {"solo:main@alpha": restarts}, change


def test_why_names_module_artifact_and_machine() -> None:
    fleet = HERE + f.instance("solo", "solo", "alpha")
    old = f.result_of(fleet, {"solo": SOLO})
    renamed = f.result_of(fleet.replace('module = "solo"', 'module = "duo"'), {"duo": SOLO})
    assert diff(old, renamed).why == {"solo:main@alpha": ["closure.module"]}
    platform = fleet.replace("[machines.alpha]", '[machines.alpha]\nplatform = "linux/arm64"')
    moved = diff(old, f.result_of(platform, {"solo": SOLO}))
    assert moved.why == {"solo:main@alpha": ["machine"]}
    assert moved.units == {"solo:main@alpha": []}
    packed = SOLO + 'archive = "code"\n[build.archives.code]\ndirectory = "src"\n'
    made = [
        f.result_of(fleet, {"solo": packed}, files={"modules/solo/src/a": content})
        for content in ("1", "2")
    ]
    found = diff(*made)
    assert found.why == {"solo:main@alpha": ["closure.artifacts.code"]}
    assert found.units == {"solo:main@alpha": ["main"]}


def test_the_cascade_is_counted_and_a_unit_that_reads_nothing_is_not_restarted() -> None:
    reader = f.READER + '[roles.main.units.other]\nkind = "process"\ncommand = ["other"]\n'
    fleet = HERE + f.instance("db", "store", "beta") + f.instance("app", "app", "alpha")
    old = f.result_of(fleet, {"store": f.PROVIDER, "app": reader}, f.STORE)
    new = f.result_of(
        fleet, {"store": f.PROVIDER.replace('"run"', '"walk"'), "app": reader}, f.STORE
    )
    found = diff(old, new)
    assert found.why["app:main@alpha"] == ["dependency db:main@beta"]
    assert found.units == {"app:main@alpha": ["main"], "db:main@beta": ["main"]}
    assert compare.by_cascade(found) == 1


def test_policy_floor_tags_rates_and_unread_settings_move_nothing() -> None:
    role = SOLO + '[roles.main.settings]\nunread = { type = "integer", default = 1 }\n'
    placed = f.instance("solo", "solo", "alpha")
    old = f.result_of(HERE + placed, {"solo": role})
    for fleet in (
        HERE + placed + "settings.main.unread = 2\n",
        HERE + placed + 'policy.upgrade = "together"\nfloor.main = 1\nonFact = "apply"\n',
        f.machines(
            "alpha",
            "beta",
            "gamma",
            "delta",
            alpha='tags = ["x"]\nlocal = true\nexec = true\n[machines.alpha.reactions]\ndebounce = { window = "5s", burst = 9 }',
        )
        + placed,
    ):
        found = diff(old, f.result_of(fleet, {"solo": role}))
        assert found.untouched == ["solo:main@alpha"]
    rated = f.result_of(fleet, {"solo": role})
    assert rated.plan.generation != old.plan.generation
    assert rated.plan.machines["alpha"].rates["debounce"] == {"window": "5s", "burst": 9}
    assert rated.plan.machines["beta"].rates == {
        "debounce": {"window": "30s", "burst": 3},
        "restartBudget": {"perUnit": 5, "window": "1h"},
    }


def test_a_plan_of_its_own_future_is_read_and_compared() -> None:
    made = solo(SOLO)
    text = msgspec.json.decode(msgspec.json.encode(made.plan))
    text["later"] = {"x": 1}
    read = msgspec.json.decode(msgspec.json.encode(text), type=Plan)
    assert compare.diff(made.plan, read).untouched == ["solo:main@alpha"]


def test_an_access_that_changes_is_a_retag_too() -> None:
    fleet = HERE + f.instance("db", "store", "alpha") + f.instance("app", "app", "alpha")
    old = f.result_of(fleet, {"store": f.PROVIDER, "app": f.READER}, f.STORE)
    local = f.PROVIDER.replace(
        'lifecycle = "static"', 'lifecycle = "static", access = "machine-local"'
    )
    found = diff(old, f.result_of(fleet, {"store": local, "app": f.READER}, f.STORE))
    assert [(one.export, one.from_, one.to, one.consumers) for one in found.retags] == [
        (
            "db:main/provides/store/url",
            "static/routable",
            "static/machine-local",
            ["app:main@alpha"],
        )
    ]
    (row,) = compare.retag_rows(found)
    assert (row.code, row.severity) == ("retag", "warning")
    assert "app:main@alpha" in row.message
