"""Limits and paths that no machine could keep or find are rows, before any machine meets them."""

import pytest

from keyplane.adapters.linux import limits
from keyplane.ports.host import HostError
from tests.unit.documents.fleet_files import of_module


def of_limits(text: str) -> list[tuple[str, str]]:
    found = of_module(
        f"[roles.main.units.u]\nkind = 'process'\ncommand = ['x']\nlimits = {{ {text} }}\n"
    )
    return [(one.code, one.message) for one in found.diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        "memory = '256M'",
        "memory = '1GiB'",
        "memory = 1024",
        "memory = '${settings.memory}'",
        "cpu = '50%'",
        "cpu = '250'",
        "cpu = '${settings.cpu}%'",
        "tasks = 100",
        "tasks = '100'",
        "tasks = '${settings.tasks}'",
    ],
)
def test_a_limit_is_an_amount_that_the_machine_can_keep(text: str):
    """The same as its driver takes."""
    assert of_limits(text) == []
    name, _, value = text.partition(" = ")
    if "${" not in value:
        said = value.strip("'")
        assert limits.parse({name: said}) != limits.Limits()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory = 'lots'", '"lots" is not an amount of memory: write it like 256M'),
        ("memory = '256m'", '"256m" is not an amount of memory: write it like 256M'),
        ("cpu = 'half'", '"half" is not a share of a processor: write it like 50%'),
        ("cpu = '0%'", '"0%" is not a share of a processor: write it like 50%'),
        ("tasks = 'few'", '"few" is not a count of tasks: write it like 100'),
    ],
)
def test_a_limit_that_no_machine_could_keep_is_a_row(text: str, said: str):
    assert of_limits(text) == [("wrong-type", said)]
    name, _, value = text.partition(" = ")
    with pytest.raises(HostError):
        limits.parse({name: value.strip("'")})


@pytest.mark.parametrize("path", ["/opt/game", "/nix/store/", "/nix/store/a/bin", "nix/store/a"])
def test_a_path_outside_of_the_nix_store_is_no_artifact(path: str):
    (row,) = of_module(f"[build.nix.game]\npath = '{path}'\n").diagnostics
    assert (row.code, row.path) == ("wrong-type", "build.nix.game.path")
    assert path in row.message
    assert "/nix/store/HASH-NAME" in row.message


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("../a", '"../a" leads out of the module'),
        ("./../a", '"./../a" leads out of the module'),
        ("/etc/passwd", '"/etc/passwd" leads out of the module'),
        ("b/../a", '"b/../a" goes up on its way: write it without `..`'),
    ],
)
def test_a_shipped_file_is_named_by_a_path_that_goes_down_only(path: str, said: str):
    text = f"[roles.main.resources.r]\ntype = 'file'\npath = '/r'\nfile = '{path}'\n"
    (row,) = of_module(text).diagnostics
    assert (row.code, row.message) == ("unreadable", said)
