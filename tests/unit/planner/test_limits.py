"""What a small document could blow up is refused with a row, in time and memory that stay small."""

import pytest

from tests.unit.planner import fleets as f

SETTING = '[roles.main.settings]\ns = { type = "string", default = "%s" }\n'
APP = f.machines("alpha") + f.instance("app", "app", "alpha")


def chain(length: int, *, slots: int = 1) -> tuple[str, dict[str, str], str]:
    """Exports that read one another, each the one before it, once for each slot."""
    interfaces = "".join(f'[i{i}.exports]\nv = "string"\n' for i in range(length))
    fleet, modules = f.machines("alpha"), {}
    for i in range(length):
        uses = "".join(
            f'[roles.main.uses.s{one}]\ninterface = "i{i - 1}"\n' for one in range(slots)
        )
        value = "".join(f"${{results.s{one}.v}}" for one in range(slots)) if i else "x"
        modules[f"m{i}"] = (
            f'{uses if i else ""}[roles.main.provides.p]\ninterface = "i{i}"\nscope = "mesh"\n'
            f'exports.v = {{ value = "{value}", lifecycle = "static" }}\n{f.UNIT}'
        )
        fleet += f.instance(f"m{i}", f"m{i}", "alpha")
    reader = f'[roles.main.uses.s]\ninterface = "i{length - 1}"\n{f.UNIT}'
    modules["app"] = reader + 'env = { A = "${results.s.v}" }\n'
    return fleet + f.instance("app", "app", "alpha"), modules, interfaces


def test_a_value_of_a_thousand_long_ones_is_left_out() -> None:
    module = SETTING % ("a" * 10_000) + f.UNIT
    made = f.plan_of(APP, {"app": f'{module}env = {{ A = "{"${settings.s}" * 1000}", B = "b" }}'})
    assert f.row(made, "wrong-type").subject == "app:main"
    assert f.env(made, "app:main@alpha") == {"B": "b"}


def test_a_role_of_many_long_values_keeps_what_fits() -> None:
    variables = ", ".join(f'E{i} = "${{settings.s}}"' for i in range(30))
    module = SETTING % ("a" * 1_000_000) + f.UNIT
    made = f.plan_of(APP, {"app": f"{module}env = {{ {variables} }}"})
    assert f.row(made, "wrong-type").subject == "app:main"
    assert len(f.env(made, "app:main@alpha")) == 16


def test_long_values_on_many_machines_are_too_much_for_a_role() -> None:
    names = [f"m{i}" for i in range(200)]
    module = SETTING % ("a" * 1_000_000) + f.UNIT
    made = f.plan_of(
        f.machines(*names) + f.instance("app", "app"),
        {
            "app": f'{module}env = {{ A = "${{settings.s}}" }}\n[roles.main.listens.l]\nprotocol = "tcp"'
        },
    )
    assert f.row(made, "wrong-type").subject == "app:main"
    assert len(made.entries) == 200
    assert made.entries["app:main@m7"].units == {}
    assert made.entries["app:main@m7"].listens == {"l": 20000}


@pytest.mark.timeout(20)
def test_exports_that_double_thirty_times_are_read_once_each() -> None:
    made = f.plan_of(*chain(31, slots=2))
    assert "wrong-type" in {row.code for row in made.diagnostics}
    sound = f.plan_of(*chain(12, slots=2))
    assert f.env(sound, "app:main@alpha") == {"A": "x" * 2**11}


def test_exports_are_read_through_thirty_two_others_at_most() -> None:
    assert f.env(f.plan_of(*chain(32)), "app:main@alpha") == {"A": "x"}
    made = f.plan_of(*chain(40))
    assert "more than 32 other exports" in f.row(made, "unknown-reference").message


def test_no_more_than_five_hundred_problems_are_told_of_one_subject() -> None:
    text = "".join(f"${{x{i}}}" for i in range(2000))
    made = f.plan_of(APP, {"app": f'{f.UNIT}env = {{ A = "{text}" }}'})
    assert len(made.diagnostics) == 501
    assert "more than 500 problems" in " ".join(row.message for row in made.diagnostics)
