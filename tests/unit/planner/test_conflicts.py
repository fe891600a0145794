"""What is singular on a machine has one holder."""

import pytest

from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")
HELD = {
    "claims": '[roles.main]\nclaims = ["display"]\n' + f.UNIT,
    "file": f.UNIT + '[roles.main.resources.r]\ntype = "file"\npath = "/etc//x/./y"\ntext = "1"\n',
    "config": f.UNIT + 'configData."/etc/x/y" = { text = "2" }\n',
    "package": f.UNIT + '[roles.main.resources.vim]\ntype = "package"\nname = "vim"\n',
    "account": f.UNIT + '[roles.main.resources.a]\ntype = "account"\nname = "vim"\n',
    "volume": f.UNIT + '[roles.main.volumes.v]\npath = "/var/lib/x"\n',
    "service": '[roles.main.units.main]\nkind = "service"\nunit = "pg.service"\n',
}


@pytest.mark.parametrize("one", [name for name in HELD if name != "config"])
def test_two_holders_on_one_machine_are_refused_naming_both(one: str) -> None:
    fleet = HERE + f.instance("a", "held", "alpha", "beta") + f.instance("b", "held", "beta")
    made = f.plan_of(fleet, {"held": HELD[one]})
    code = "claim-conflict" if one == "claims" else "resource-conflict"
    row = f.row(made, code)
    assert row.subject == "b:main@beta"
    assert "a:main" in row.message
    assert "b:main" in row.message
    assert sorted(made.entries) == ["a:main@alpha", "a:main@beta", "b:main@beta"]


def test_a_config_path_counts_as_a_resource_however_it_is_written() -> None:
    fleet = HERE + f.instance("a", "file", "alpha") + f.instance("b", "config", "alpha")
    made = f.plan_of(fleet, {"file": HELD["file"], "config": HELD["config"]})
    assert f.row(made, "resource-conflict").subject == "b:main@alpha"


def test_a_package_and_an_account_of_one_name_are_two_things() -> None:
    fleet = HERE + f.instance("a", "package", "alpha") + f.instance("b", "account", "alpha")
    assert f.rows(f.plan_of(fleet, {name: HELD[name] for name in ("package", "account")})) == []


def test_an_entry_may_say_who_owns_the_directory_of_its_volume() -> None:
    text = HELD["volume"] + (
        '[roles.main.resources.v]\ntype = "directory"\npath = "/var/lib/x"\nmode = "0700"\n'
    )
    fleet = HERE + f.instance("a", "one", "alpha")
    assert f.rows(f.plan_of(fleet, {"one": text})) == []
    two = fleet + f.instance("b", "volume", "alpha")
    made = f.plan_of(two, {"one": text, "volume": HELD["volume"]})
    assert f.rows(made) == [("resource-conflict", "b:main@alpha")]


def test_units_of_one_entry_share_a_file_of_one_content_only() -> None:
    def two(first: str, second: str) -> str:
        return "".join(
            f'[roles.main.units.{name}]\nkind = "process"\ncommand = ["x"]\n'
            f'configData."/etc/x" = {{ text = "{text}" }}\n'
            for name, text in (("a", first), ("b", second))
        )

    fleet = HERE + f.instance("solo", "solo", "alpha")
    assert f.rows(f.plan_of(fleet, {"solo": two("1", "1")})) == []
    (row,) = f.plan_of(fleet, {"solo": two("1", "2")}).diagnostics
    assert (row.code, row.subject) == ("resource-conflict", "solo:main@alpha")
    assert row.resolution == (
        "let one of units.a.configData./etc/x and units.b.configData./etc/x name another",
    )


def test_paths_that_differ_by_machine_are_judged_machine_by_machine() -> None:
    text = f.UNIT + 'configData."/etc/x" = { text = "${machine.name}" }\n'
    fleet = HERE + f.instance("a", "solo") + f.instance("b", "solo", "beta")
    assert f.rows(f.plan_of(fleet, {"solo": text})) == [("resource-conflict", "b:main@beta")]
