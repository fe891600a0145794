"""A directory is planned by the facts that an apply of it would take."""

import pytest

from keyplane import planner
from keyplane.cli import reading
from keyplane.parts.fact_messages import FactsWaiting
from tests.unit.parts.fact_fleet import instance, named, planned, read, text
from tests.unit.parts.fact_fleet import known as told

FITS, LACKS = {"kernel.modules": ["wireguard"]}, {"kernel.modules": ["ext4"]}


@pytest.mark.parametrize(("module", "placed"), [("vpn", "beta"), ("plain", "alpha")])
def test_a_plan_goes_by_what_waits_for_what_is_edited(
    module: str, placed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And says so, where it does."""
    files = text(instance("vpn", "count { count = 1 }"), named("plain", "gamma"))
    target = planned(files, told(alpha=FITS, beta=FITS)).plan
    waiting = FactsWaiting(
        machine="alpha",
        said=LACKS,
        planned=FITS,
        entries={"vpn:node@alpha": "it would move to beta"},
        why="",
        command="keyplane facts alpha",
    )
    after = reading.Standing(target, {"alpha": FITS, "beta": FITS}, [waiting])
    path = f"modules/{module}/module.toml"
    edited = read({**files, path: files[path].replace(b'["run"]', b'["run", "newer"]')})
    found = reading.by_what_waits(planner.plan(after.request(edited)), after, edited)
    assert [each for each in found.plan.entries if "vpn" in each] == [f"vpn:node@{placed}"]
    said = capsys.readouterr().err
    assert ("planned by kernel.modules of alpha" in said) == (placed == "beta")
