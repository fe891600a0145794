"""Fleet directories made to break what reads them. Each is written by one function."""

import os
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

DEEP = 100_000
LARGE = 10_000_000
HEAD = 'fleet = "x"\n[machines.alpha]\naddress = "10.0.0.1"\n'
PLACED = '[instances.app]\nmodule = "app"\nplacement.every.main = {}\n'
FLEET = HEAD + PLACED
MODULE = 'module = "app"\nversion = "1"\n'
UNIT = '[roles.main.units.main]\nkind = "process"\ncommand = ["run"]\n'
APP = "modules/app/module.toml"
LONG = f'[roles.main.settings]\ns = {{ type = "string", default = "{"a" * 1_000_000}" }}\n'

Write = Callable[[Path], None]
CASES: dict[str, tuple[Write, str]] = {}
"""What writes the fleet, and what has to be said of it: empty where it is sound."""


def case(expected: str) -> Callable[[Write], Write]:
    def note(write: Write) -> Write:
        CASES[write.__name__] = write, expected
        return write

    return note


def files(expected: str, **named: Mapping[str, str | bytes]) -> None:
    """Cases that are nothing but text."""
    for name, texts in named.items():
        CASES[name] = (lambda root, texts=texts: put(root, texts)), expected


def put(root: Path, texts: Mapping[str, str | bytes]) -> None:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def app(text: str, fleet: str = FLEET) -> dict[str, str | bytes]:
    return {"fleet.toml": fleet, APP: MODULE + text}


def star(body: str) -> dict[str, str | bytes]:
    return {"fleet.star": f"def fleet():\n  {body}"}


def impl(body: str) -> dict[str, str | bytes]:
    said = 'def module():\n  return {"module": "app", "version": "1", "roles": {"main": {"impl": f}}}\n'
    return {"fleet.toml": FLEET, "modules/app/module.star": f"{said}def f(ctx):\n  {body}"}


files(
    "deep|nest|parts|is no pattern",
    json_tables={"fleet.json": '{"a":' * DEEP + "1" + "}" * DEEP},
    json_lists={"fleet.json": '{"fleet":' + "[" * DEEP + "]" * DEEP + "}"},
    json_never_closed={"fleet.json": "[" * 10 * DEEP},
    toml_lists={"fleet.toml": "fleet=" + "[" * DEEP + "]" * DEEP},
    toml_dotted={"fleet.toml": ".".join(["a"] * DEEP) + "=1"},
    toml_dotted_head={"fleet.toml": "[" + ".".join(["a"] * DEEP) + "]\nx=1"},
    toml_inline={"fleet.toml": "a=" + "{a=" * DEEP + "1" + "}" * DEEP},
    star_lists=star("return " + "[" * DEEP + "]" * DEEP),
    star_minus=star("return " + "-" * DEEP + "1"),
    star_sum=star("return " + "+".join(["1"] * DEEP)),
    star_built=star('x = {}\n  for i in range(100000):\n    x = {"a": x}\n  return x'),
    star_role_built=impl('x = {}\n  for i in range(900):\n    x = {"a": x}\n  return x'),
    star_role_lists=impl('x = []\n  for i in range(900):\n    x = [x]\n  return {"units": x}'),
    pattern=app(
        LONG.replace('"string"', '"string", pattern = "' + "(" * DEEP + ")" * DEEP + '"', 1) + UNIT
    ),
)
files(
    "starlark",
    star_parentheses=star("return " + "(" * DEEP + "1" + ")" * DEEP),
    star_integer=star("return 1"),
    star_role_integer=impl("return 1"),
    star_range=star('return {"a": list(range(1 << 40))}'),
    star_long_loop=star("for i in range(1 << 60):\n    pass\n  return {}"),
    star_string=star('return {"fleet": "a" * (1 << 40)}'),
    star_doubled=star('s = "a"\n  for i in range(60):\n    s = s + s\n  return {"fleet": s}'),
    star_shared=star('s = ["a"]\n  for i in range(60):\n    s = [s, s]\n  return {"fleet": s}'),
    star_power=star('s = 3\n  for i in range(60):\n    s = s * s\n  return {"fleet": s}'),
    star_in_itself=star('s = []\n  s.append(s)\n  return {"fleet": s}'),
    star_recursion=star("return fleet()"),
    star_circle={
        "fleet.star": 'load("//a.star", "x")\ndef fleet():\n  return {}',
        "a.star": 'load("//b.star", "x")\n',
        "b.star": 'load("//a.star", "x")\n',
    },
    star_loads_itself={"fleet.star": 'load("//fleet.star", "x")\ndef fleet():\n  return {}'},
    star_loads_nul={"fleet.star": 'load("//p\\u0000.star", "x")\ndef fleet():\n  return {}'},
    star_mark={"fleet.star": b'\xef\xbb\xbfdef fleet():\n  return {"fleet": "x"}'},
    star_lines={"fleet.star": 'def fleet():\n  return {"fleet": "x"}\n' + "x = 1\n" * 1_700_000},
)
files(
    "more than 500 files",
    star_chain_of_loads={
        "fleet.star": 'load("//l/0.star", "x")\ndef fleet():\n  return {}',
        **{f"l/{i}.star": f'load("//l/{i + 1}.star", _x="x")\nx = _x\n' for i in range(600)},
    },
)
files(
    "more than (the )?[0-9]+|have [0-9]+ char",
    setting_in_many_variables=app(
        LONG
        + UNIT
        + "env = {"
        + ", ".join(f'E{i} = "${{settings.s}}"' for i in range(10_000))
        + "}"
    ),
    setting_many_times=app(LONG + UNIT + 'env = { A = "' + "${settings.s}" * 10_000 + '" }'),
    setting_in_many_words=app(LONG + UNIT.replace('"run"', ",".join(['"${settings.s}"'] * 10_000))),
    setting_in_many_files=app(
        LONG
        + UNIT
        + "".join(
            f'configData."/f{i}" = {{ text = "{i}${{settings.s}}" }}\n' for i in range(10_000)
        )
    ),
    references=app(UNIT + 'env = { A = "' + "${self.role}" * 300_000 + '" }'),
    nothing_named=app(
        UNIT + 'env = { A = "' + "".join(f"${{x{i}}}" for i in range(100_000)) + '" }'
    ),
    machines_of_long_values=app(
        LONG + UNIT + 'env = { A = "${machine.name}${settings.s}" }',
        'fleet = "x"\n'
        + "".join(f'[machines.m{i}]\naddress = "a{i}"\n' for i in range(1000))
        + PLACED,
    ),
    machines_of_long_files=app(
        LONG + UNIT + 'configData."/f" = { text = "${machine.name}${settings.s}" }',
        'fleet = "x"\n'
        + "".join(f'[machines.m{i}]\naddress = "a{i}"\n' for i in range(1000))
        + PLACED,
    ),
    unknown_fields={"fleet.json": "{" + ",".join(f'"k{i}":1' for i in range(900_000)) + "}"},
    unknown_settings={
        "fleet.toml": FLEET + "".join(f"settings.main.s{i}x = 1\n" for i in range(5000)),
        APP: MODULE
        + "".join(
            f'[roles.main.settings.s{i}]\ntype = "integer"\ndefault = 1\n' for i in range(5000)
        )
        + UNIT,
    },
    machines_without_address={
        "fleet.toml": 'fleet = "x"\n' + "".join(f"[machines.k{i}]\n" for i in range(300_000))
    },
    bytes_of_a_document={"fleet.toml": b"#" + b"a" * 70_000_000},
)
files(
    "unreadable",
    key_twice={"fleet.json": '{"fleet":"a","fleet":"b"}'},
    key_twice_below={"fleet.json": '{"fleet":"a","machines":{"a":{"address":"x","address":"y"}}}'},
    json_integer={"fleet.json": '{"fleet":' + "9" * 1_000_000 + "}"},
    json_float={"fleet.json": '{"fleet":1e999999}'},
    toml_integer={"fleet.toml": "fleet=" + "9" * 1_000_000},
    toml_open_text={"fleet.toml": 'fleet="""' + "\\\n" * 3_000_000},
    toml_mark={"fleet.toml": b"\xef\xbb\xbf" + FLEET.encode()},
    json_mark={"fleet.json": b'\xef\xbb\xbf{"fleet":"x"}'},
    other_encoding={"fleet.json": '{"fleet":"x"}'.encode("utf-16")},
)
files(
    "wrong-type|unknown-",
    toml_hexadecimal={"fleet.toml": "fleet=0x" + "f" * 1_000_000},
    long_name={"fleet.json": '{"fleet":"' + "a" * LARGE + '"}'},
    odd_names={
        "fleet.json": '{"fleet":"a\u0301\u202e\u2028\ufeff","machines":{"a\u0301":{"address":"x"},'
        '"\u2028":{"address":"x"},"\ufeffb":{"address":"x"}}}'
    },
    nul_in_names={"fleet.json": '{"fleet":"a\\u0000","machines":{"a\\u0000":{"address":"x"}}}'},
    nul_in_values=app(
        '[roles.main.units.main]\nkind = "process"\ncommand = ["a\\u0000"]\n'
        'env = { "A\\u0000" = "b", B = "\\u0000" }\nconfigData."/a\\u0000" = { file = "x\\u0000" }'
    ),
    names_of_64={
        "fleet.toml": f'fleet = "x"\n[machines.{"a" * 64}]\naddress = "x"\n'
        f'[instances.{"b" * 64}]\nmodule = "{"c" * 64}"\nplacement.every.{"d" * 64} = {{}}\n'
    },
    cases_alike={**app(UNIT), "modules/App/module.toml": MODULE, "Fleet.toml": ""},
    reference_never_closed=app(UNIT + 'env = { A = "' + "$${" * 2_500_000 + '${" }'),
    pattern_of_huge_repeats=app(
        '[roles.main.settings]\ns = { type = "string", default = "x", pattern = '
        '"(((x{1,1000}){1,1000}){1,1000})\\\\1" }\n' + UNIT
    ),
)
files(
    "setting-invalid|requirement-unmet",
    pattern_of_many_ways=app(
        '[roles.main.settings]\ns = { type = "string", pattern = "^(a+)+$" }\n' + UNIT,
        FLEET + 'settings.main.s = "' + "a" * 60 + '!"\n',
    ),
    pattern_of_long_ways=app(
        '[roles.main.settings]\ns = { type = "string", pattern = "x*x*x*x*y" }\n' + UNIT,
        FLEET + 'settings.main.s = "' + "x" * 300_000 + '"\n',
    ),
    pattern_of_a_requirement={
        **app(
            UNIT + '[[roles.main.requirements]]\nsubject = "x"\npredicate = "matches"\n'
            'pattern = "^(a+)+$"\n',
            FLEET.replace("main = {}", 'main = { machines = ["alpha"] }'),
        ),
        "facts/alpha.json": '{"machine":"alpha","facts":{"x":"' + "a" * 60 + '!"}}',
    },
)
files(
    "",
    comment={**app(UNIT), "fleet.toml": FLEET + "# " + "a" * LARGE},
    star_text={"fleet.star": f'x = "{"a" * LARGE}"\ndef fleet():\n  return {{"fleet": "x"}}'},
    word_before_a_url=app(UNIT + 'env = { A = "' + "a" * 1_000_000 + '://" }'),
    urls=app(UNIT + 'env = { A = "' + "a://x:" * 150_000 + '" }'),
    names_of_63={
        "fleet.toml": f'fleet = "x"\n[machines.{"a" * 63}]\naddress = "x"\n'
        f'[instances.{"b" * 63}]\nmodule = "{"c" * 63}"\nplacement.every.{"d" * 63} = {{}}\n',
        f"modules/{'c' * 63}/module.toml": f'module = "{"c" * 63}"\nversion = "1"\n'
        f'[roles.{"d" * 63}.units.{"e" * 63}]\nkind = "process"\ncommand = ["x"]\n',
    },
    toolchains=app(
        UNIT
        + "".join(
            f'[build.bundles.b{i}]\ntoolchain = "app/b{(i + 1) % 2000}"\ncommand = ["x"]\n'
            'output = "o"\n'
            for i in range(2000)
        )
    ),
)


def chain(length: int, scope: str, *, twice: bool = False, placed: bool = True) -> dict[str, str]:
    """Exports that read one another, each the one before it: once, or twice over."""
    found = {
        "interfaces.toml": "".join(f'[i{i}.exports]\nv = "string"\n' for i in range(length)),
        APP: f'{MODULE}[roles.main.uses.s]\ninterface = "i{length - 1}"\n{UNIT}'
        'env = { A = "${results.s.v}" }',
    }
    instances = ""
    for i in range(length):
        slots = ("s", "t") if twice else ("s",)
        uses = "".join(f'[roles.main.uses.{one}]\ninterface = "i{i - 1}"\n' for one in slots)
        value = "".join(f"${{results.{one}.v}}" for one in slots)
        found[f"modules/m{i}/module.toml"] = (
            f'module = "m{i}"\nversion = "1"\n{uses if i else ""}[roles.main.provides.p]\n'
            f'interface = "i{i}"\nscope = "{scope}"\n'
            f'exports.v = {{ value = "{value if i else "x"}", lifecycle = "static" }}\n{UNIT}'
        )
        if placed:
            instances += f'[instances.m{i}]\nmodule = "m{i}"\nplacement.every.main = {{}}\n'
    beta = '[machines.beta]\naddress = "10.0.0.2"\n'
    found["fleet.toml"] = HEAD + (beta if scope == "machine" else "") + instances + PLACED
    return found


files(
    "may have [0-9]+ characters",
    exports_doubled=chain(31, "mesh", twice=True),
    exports_doubled_beside=chain(31, "machine", twice=True),
    exports_doubled_implied=chain(31, "machine", twice=True, placed=False),
)
files(
    "more than 32 other exports",
    exports_in_a_row=chain(1000, "mesh"),
    exports_in_a_row_beside=chain(1000, "machine"),
    exports_in_a_row_implied=chain(1000, "machine", placed=False),
)
around = chain(31, "machine", twice=True)
around["modules/m0/module.toml"] = around["modules/m0/module.toml"].replace(
    'value = "x"', 'value = "${results.s.v}"'
) + ('[roles.main.uses.s]\ninterface = "i30"\n')
files("refers to itself|more than 32", exports_in_circles=around)


@case("unreadable")
def fleet_is_a_pipe(root: Path) -> None:
    os.mkfifo(root / "fleet.toml")


@case("unreadable")
def fleet_is_a_socket(root: Path) -> None:
    here = Path.cwd()
    os.chdir(root)  # the path of a socket has to be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("fleet.toml")
    finally:
        os.chdir(here)


@case("unreadable")
def fleet_is_a_device(root: Path) -> None:
    (root / "fleet.toml").symlink_to("/dev/zero")


@case("unreadable")
def fleet_is_a_directory(root: Path) -> None:
    (root / "fleet.toml").mkdir()


@case("unreadable")
def fleet_is_a_link_to_itself(root: Path) -> None:
    (root / "fleet.toml").symlink_to("fleet.toml")


@case("unreadable")
def fleet_is_a_link_out(root: Path) -> None:
    (root / "fleet.toml").symlink_to("/etc/hostname")


@case("unreadable")
def a_module_is_a_pipe(root: Path) -> None:
    put(root, {"fleet.toml": FLEET, "modules/app/x": ""})
    os.mkfifo(root / APP)


@case("unreadable not a directory")
def modules_and_facts_are_files(root: Path) -> None:
    put(root, {"fleet.toml": HEAD, "modules": "x", "facts": "x"})


@case("unreadable a link that leads out")
def modules_is_a_link_out(root: Path) -> None:
    put(root, {"fleet.toml": HEAD})
    (root / "modules").symlink_to("/proc")


@case("unreadable a link that leads nowhere")
def modules_is_a_link_to_nothing(root: Path) -> None:
    put(root, {"fleet.toml": HEAD})
    (root / "modules").symlink_to("none")


@case("unreadable")
def facts_are_a_pipe_and_a_link_out(root: Path) -> None:
    put(root, {**app(UNIT), "facts/x": ""})
    os.mkfifo(root / "facts/alpha.json")
    (root / "facts/beta.json").symlink_to("/etc/hostname")


@case("leads out")
def facts_is_a_link_out(root: Path) -> None:
    put(root.parent / "elsewhere", {"alpha.json": '{"machine": "alpha", "facts": {}}'})
    put(root, app(UNIT))
    (root / "facts").symlink_to("../elsewhere")


@case("reached by a link")
def a_shipped_file_is_a_link_out(root: Path) -> None:
    put(root, app(UNIT + 'configData."/f" = { file = "passwd" }'))
    (root / "modules/app/passwd").symlink_to("/etc/passwd")


SHIPS = UNIT + 'archive = "a"\n[build.archives.a]\ndirectory = "src"\n'


@case("unreadable")
def an_archive_holds_a_pipe(root: Path) -> None:
    put(root, {**app(SHIPS), "modules/app/src/x": ""})
    os.mkfifo(root / "modules/app/src/p")


@case("more than 8 GiB")
def an_archive_holds_a_sparse_file(root: Path) -> None:
    put(root, {**app(SHIPS), "modules/app/src/x": ""})
    with (root / "modules/app/src/x").open("wb") as file:
        file.truncate(1 << 40)


@case("")
def an_archive_is_deep(root: Path) -> None:
    put(root, {**app(SHIPS), "modules/app/src/x": ""})
    here = Path.cwd()
    os.chdir(root / "modules/app/src")
    try:
        for _ in range(1200):
            Path("d").mkdir()
            os.chdir("d")
    finally:
        os.chdir(here)


@case("")
def a_hundred_thousand_files(root: Path) -> None:
    put(root, app(UNIT))
    for number in range(50_000):
        (root / f"f{number}").touch()
        (root / f"modules/f{number}").touch()


@case("wrong-type")
def names_are_no_utf_8(root: Path) -> None:
    put(root, {**app(UNIT), "facts/x": ""})
    (root / "modules" / os.fsdecode(b"\xff\xfe")).mkdir()
    (root / "modules" / os.fsdecode(b"\xff\xfe") / "module.toml").write_text(MODULE)
    (root / "facts" / os.fsdecode(b"\xff.json")).write_text("{}")


@case("wrong-type")
def names_hold_lines(root: Path) -> None:
    put(root, {**app(UNIT), "modules/a\nb/module.toml": MODULE, "facts/a\x1b[31m.json": "{}"})
