"""Entries that stand only because another needs them beside it."""

from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")
SHELL = '[shell.exports]\npath = "string"\n'
ZSH = (
    f.UNIT
    + """
[roles.main.settings]
path = { type = "string", default = "/usr/bin/zsh" }
[roles.main.provides.shell]
interface = "shell"
exports.path = { value = "${settings.path}", lifecycle = "static" }
"""
)
DESK = """
[roles.main.uses.sh]
interface = "shell"
[roles.main.units.main]
kind = "process"
command = ["desk"]
env = { SHELL = "${results.sh.path}" }
"""


def test_an_implied_entry_takes_the_settings_of_an_instance_of_its_name() -> None:
    fleet = HERE + f.instance("desk", "desk", "alpha")
    fleet += '[instances.zsh]\nmodule = "zsh"\nsettings.main.path = "/bin/zsh"\n'
    made = f.plan_of(fleet, {"zsh": ZSH, "desk": DESK}, SHELL)
    assert f.env(made, "desk:main@alpha") == {"SHELL": "/bin/zsh"}
    assert f.rows(made) == []


def test_an_implied_entry_without_a_setting_says_all_that_is_to_be_written() -> None:
    """There is no instance that could have it."""
    zsh = ZSH.replace(', default = "/usr/bin/zsh"', "")
    modules = {"zsh": zsh, "desk": DESK}
    fleet = HERE + f.instance("desk", "desk", "alpha")
    line = "write instances.zsh.settings.main.path = … (a string)"
    row = f.row(f.plan_of(fleet, modules, SHELL), "setting-missing")
    assert row.resolution == (line, 'and instances.zsh.module = "zsh"')
    fleet += '[instances.zsh]\nmodule = "zsh"\n'
    assert f.row(f.plan_of(fleet, modules, SHELL), "setting-missing").resolution == (line,)


def test_two_modules_that_could_be_implied_are_ambiguous() -> None:
    fleet = HERE + f.instance("desk", "desk", "alpha")
    made = f.plan_of(fleet, {"zsh": ZSH, "fish": ZSH, "desk": DESK}, SHELL)
    row = f.row(made, "slot-ambiguous")
    assert "zsh" in row.message
    assert "fish" in row.message


def test_an_instance_of_the_name_with_another_module_is_ambiguous() -> None:
    fleet = HERE + f.instance("desk", "desk", "alpha") + f.instance("zsh", "idle", "beta")
    made = f.plan_of(fleet, {"zsh": ZSH, "desk": DESK, "idle": f.UNIT}, SHELL)
    assert f.rows(made) == [("slot-ambiguous", "desk:main")]


def test_an_unmet_requirement_of_the_implied_is_a_row_of_its_reader() -> None:
    needs = ZSH + '[[roles.main.requirements]]\nsubject = "tty"\npredicate = "exists"\n'
    fleet = HERE + f.instance("desk", "desk")
    made = f.plan_of(fleet, {"zsh": needs, "desk": DESK}, SHELL, files=f.facts("beta", tty=True))
    row = f.row(made, "requirement-unmet")
    assert row.subject == "desk:main@alpha"
    assert sorted(made.entries) == ["desk:main@alpha", "desk:main@beta", "zsh:main@beta"]


def test_an_implied_entry_answers_its_own_machine_only_even_where_it_offers_more() -> None:
    more = (
        ZSH
        + '[roles.main.provides.store]\ninterface = "store"\nscope = "mesh"\nexports.url = { value = "x", lifecycle = "static" }\n'
    )
    fleet = HERE + f.instance("desk", "desk", "alpha") + f.instance("app", "app", "beta")
    made = f.plan_of(fleet, {"zsh": more, "desk": DESK, "app": f.READER}, SHELL + f.STORE)
    assert f.rows(made) == [("slot-unbound", "app:main")]


def test_what_an_implied_entry_needs_is_implied_as_well() -> None:
    font = (
        f.UNIT
        + '[roles.main.provides.font]\ninterface = "font"\nexports.name = { value = "mono", lifecycle = "static" }\n'
    )
    needs = ZSH + '[roles.main.uses.font]\ninterface = "font"\n'
    interfaces = SHELL + '[font.exports]\nname = "string"\n'
    made = f.plan_of(
        HERE + f.instance("desk", "desk", "beta"),
        {"zsh": needs, "font": font, "desk": DESK},
        interfaces,
    )
    assert sorted(made.entries) == ["desk:main@beta", "font:main@beta", "zsh:main@beta"]
    assert {edge.chosen for edge in made.edges} == {"implied"}
    assert f.rows(made) == []


def test_a_bound_slot_implies_nothing() -> None:
    fleet = HERE + f.instance("login", "zsh", "beta")
    fleet += f.instance("desk", "desk", "alpha", more='bind.main.sh = "login"')
    made = f.plan_of(fleet, {"zsh": ZSH, "desk": DESK}, SHELL)
    assert f.rows(made) == [("machine-local-split", "desk:main@alpha")]
    assert "zsh:main@alpha" not in made.entries


def test_an_unbound_slot_implies_beside_each_reader_and_keeps_a_placed_provider() -> None:
    fleet = HERE + f.instance("login", "zsh", "beta") + f.instance("desk", "desk")
    made = f.plan_of(fleet, {"zsh": ZSH, "desk": DESK}, SHELL)
    found = {edge.consumer: (edge.provider, edge.chosen) for edge in made.edges}
    assert found == {
        "desk:main@alpha": ("zsh:main@alpha", "implied"),
        "desk:main@beta": ("login:main@beta", "only"),
    }


def test_a_role_by_count_goes_where_what_it_implies_can_stand() -> None:
    """A machine that what is needed beside it does not fit does not fit it either."""
    needs = ZSH + '[[roles.main.requirements]]\nsubject = "tty"\npredicate = "exists"\n'
    fleet = HERE + '[instances.desk]\nmodule = "desk"\nplacement.count.main = { count = 1 }\n'
    modules = {"zsh": needs, "desk": DESK}
    made = f.plan_of(fleet, modules, SHELL, files=f.facts("beta", tty=True))
    assert sorted(made.entries) == ["desk:main@beta", "zsh:main@beta"]
    assert f.rows(made) == []
    short = f.row(f.plan_of(fleet, modules, SHELL), "placement-short")
    assert "zsh:main beside it, which requires tty exists" in short.message


def test_what_is_implied_nowhere_leaves_no_row() -> None:
    """Though it was looked at whether it could stand there."""
    broken = (
        ZSH + '[[roles.main.requirements]]\nsubject = "${settings.none}"\npredicate = "exists"\n'
    )
    broken += '[[roles.main.requirements]]\nsubject = "tty"\npredicate = "exists"\n'
    fleet = HERE + '[instances.desk]\nmodule = "desk"\nplacement.count.main = { count = 1 }\n'
    made = f.plan_of(fleet, {"zsh": broken, "desk": DESK}, SHELL)
    assert f.rows(made) == [("placement-short", "desk:main")]
