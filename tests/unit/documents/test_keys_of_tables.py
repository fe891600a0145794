"""Keys that a person chooses where a name is none: variables, and paths of files and mounts."""

import pytest

from tests.unit.documents.fleet_files import of_module

UNIT = '[roles.main.units.u]\nkind = "container"\nimage = "i"\n'
BUILD = '[build.upstream.i]\nimage = "x:1"\n'


@pytest.mark.parametrize(
    "key",
    [
        'env = { "A${settings.n}" = "x" }',
        'configData = { "/etc/${self.instance}/x" = { text = "" } }',
        'configData = { "${settings.path}" = { text = "" } }',
        'mounts = { "/${machine.name}" = "/x" }',
    ],
)
def test_a_key_takes_no_reference(key: str) -> None:
    """It would be a path with a dollar in it, which nobody means."""
    (row,) = of_module(UNIT + key + "\n" + BUILD).diagnostics
    assert row.code == "wrong-type"
    assert "keys take no references" in row.message


@pytest.mark.parametrize("path", ["etc/x", "/etc/../x", ""])
def test_a_path_is_absolute(path: str) -> None:
    (row,) = of_module(f'{UNIT}configData = {{ "{path}" = {{ text = "" }} }}\n{BUILD}').diagnostics
    assert (row.code, "no absolute path" in row.message) == ("wrong-type", True)
