"""What is hostile in one spelling of a document is tried in the others as well."""

import json
from pathlib import Path

from tests.fuzz.hostile import APP, FLEET, LONG, MODULE, UNIT, app, case, files, impl, put, star

NAMES = ("a\u0301", "a\u202e", "\u2028", "\ufeffb", "\U0001f40e", "", "a.b", "A")
BAD = {name: {"address": "x"} for name in NAMES}
HUGE = (1 << 63) - 1
BLOWN = '{"units": {"main": {"kind": "process", "command": ["x"], "env": {"A": "${settings.s}" * 10000}}}}'
WITH_SETTING = f"""def f(ctx):
  return {BLOWN}
def module():
  settings = {{"s": {{"type": "string", "default": "a" * 1000000}}}}
  return {{"module": "app", "version": "1", "roles": {{"main": {{"impl": f, "settings": settings}}}}}}
"""


def long_names(size: int) -> dict[str, object]:
    placed = {"module": "c" * size, "placement": {"every": {"d" * size: {}}}}
    machines = {"a" * size: {"address": "x"}}
    return {"fleet": "x", "machines": machines, "instances": {"b" * size: placed}}


def counted(count: int) -> dict[str, object]:
    placed = {"module": "app", "placement": {"count": {"main": {"count": count}}}}
    machines = {"alpha": {"address": "10.0.0.1"}}
    return {"fleet": "x", "machines": machines, "instances": {"app": placed}}


def returned(tree: object) -> dict[str, str | bytes]:
    return star(f"return {json.dumps(tree)}")


files(
    "wrong-type",
    toml_odd_names={
        "fleet.toml": 'fleet = "x"\n'
        + "".join(f'[machines.{json.dumps(n)}]\naddress = "x"\n' for n in NAMES[:2] + NAMES[5:])
    },
    star_odd_names={
        "fleet.star": f"def fleet():\n  return {json.dumps({'fleet': 'x', 'machines': BAD}, ensure_ascii=False)}"
    },
    star_nul_in_names=star('return {"fleet": "a\\x00", "machines": {"a\\x00": {"address": "x"}}}'),
    star_nul_in_values=impl(
        'return {"units": {"main": {"kind": "process", "command": ["a\\x00"], "env": {"A": "\\x00"}}}}'
    ),
    star_huge_integer=star('return {"fleet": 1 << 64}'),
    json_names_of_64={"fleet.json": json.dumps(long_names(64))},
    star_names_of_64=returned(long_names(64)),
)
files(
    "unreadable|starlark",
    json_lone_surrogate={"fleet.json": '{"fleet": "\\ud83d"}'},
    toml_lone_surrogate={"fleet.toml": 'fleet = "\\ud83d"'},
    star_lone_surrogate=star('return {"fleet": "\\ud83d"}'),
    toml_nul={"fleet.toml": FLEET + "\0"},
    json_nul={"fleet.json": '{"fleet": "x"\0}'},
    star_nul={"fleet.star": 'def fleet():\n  return {"fleet": "x"}\0\n'},
    toml_key_twice={"fleet.toml": 'fleet = "x"\nfleet = "y"'},
    toml_table_twice={"fleet.toml": FLEET + '[machines.alpha]\naddress = "y"\n'},
    star_key_twice=star('return {"fleet": "x", "fleet": "y"}'),
    star_not_utf_8={"fleet.star": b'def fleet():\n  return {"fleet": "\xff"}'},
)
files(
    "unknown-module",
    json_names_of_63={"fleet.json": json.dumps(long_names(63))},
    star_names_of_63=returned(long_names(63)),
)
files(
    "placement-short",
    toml_huge_count=app(
        UNIT, FLEET.replace("every.main = {}", f"count.main = {{ count = {HUGE} }}")
    ),
    json_huge_count={"fleet.json": json.dumps(counted(HUGE)), APP: MODULE + UNIT},
    star_huge_count={**returned(counted(HUGE)), APP: MODULE + UNIT},
)
files(
    "more than (the )?[0-9]+|have [0-9]+ char",
    json_setting_many_times={
        "fleet.toml": FLEET,
        "modules/app/module.json": json.dumps(
            {
                "module": "app",
                "version": "1",
                "roles": {
                    "main": {
                        "settings": {"s": {"type": "string", "default": "a" * 1_000_000}},
                        "units": {
                            "main": {
                                "kind": "process",
                                "command": ["x"],
                                "env": {"A": "${settings.s}" * 10_000},
                            }
                        },
                    }
                },
            }
        ),
    },
    star_setting_many_times={"fleet.toml": FLEET, "modules/app/module.star": WITH_SETTING},
)
files("", json_of_10_mb={"fleet.json": json.dumps({"fleet": "x"}) + " " * 10_000_000})


@case("unreadable")
def json_fleet_is_a_link_out(root: Path) -> None:
    (root / "fleet.json").symlink_to("/etc/hostname")


@case("unreadable")
def star_fleet_is_a_link_out(root: Path) -> None:
    put(root.parent / "elsewhere", {"fleet.star": 'def fleet():\n  return {"fleet": "x"}'})
    (root / "fleet.star").symlink_to("../elsewhere/fleet.star")


@case("starlark")
def star_loads_a_link_out(root: Path) -> None:
    put(root.parent / "elsewhere", {"a.star": 'x = "out"'})
    put(root, {"fleet.star": 'load("//a.star", "x")\ndef fleet():\n  return {"fleet": x}'})
    (root / "a.star").symlink_to("../elsewhere/a.star")


@case("unreadable")
def a_module_is_a_link_out(root: Path) -> None:
    put(root.parent / "elsewhere", {"module.toml": MODULE + LONG + UNIT})
    put(root, {"fleet.toml": FLEET, "modules/x": ""})
    (root / "modules/app").symlink_to("../../elsewhere")
