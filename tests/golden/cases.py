"""Fleets that change by stages, and what the command line answers of each.

`fleets/NAME/STAGE/` holds the files of a stage; it has those of the stages before it too, where it
does not say otherwise. A stage is planned with the plan of the one before as `--previous`, and
compared with it. `same-as` names the stage of another fleet, of which this one is another spelling.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from keyplane.cli import registry

FLEETS = Path(__file__).parent / "fleets"
PLAN, DIFF, SAME_AS = ".plan.json", ".diff.json", "same-as"


def names() -> list[str]:
    return sorted(path.name for path in FLEETS.iterdir())


@contextmanager
def stages(name: str) -> Iterator[Iterator[tuple[str, Path]]]:
    """The name of each stage, and the fleet's directory, which the next one changes."""
    with tempfile.TemporaryDirectory() as work:
        fleet = Path(work) / "fleet"

        def each() -> Iterator[tuple[str, Path]]:
            for stage in sorted(path for path in (FLEETS / name).iterdir() if path.is_dir()):
                shutil.copytree(stage, fleet, dirs_exist_ok=True)
                yield stage.name, fleet

        yield each()


def answers(name: str) -> dict[str, str]:
    """What is recorded, or ought to be, by path below `fleets`."""
    found: dict[str, str] = {}
    with stages(name) as each:
        for stage, fleet in each:
            old, new = fleet.with_name("old.json"), fleet.with_name("new.json")
            kept = ("--previous", old) if old.exists() else ()
            printed = run("plan", fleet, "--json", *kept)
            new.write_text(printed)
            found[f"{name}/{stage}{PLAN}"] = laid_out(printed)
            if old.exists():
                found[f"{name}/{stage}{DIFF}"] = laid_out(run("diff", old, new, "--json"))
            new.rename(old)
    twin = FLEETS / name / SAME_AS
    if twin.exists():
        return {twin.read_text().strip() + PLAN: found[f"{name}/1{PLAN}"]}
    return found


def run(*words: object) -> str:
    found = CliRunner().invoke(registry.keyplane, [str(word) for word in words])
    assert found.exit_code in (0, 3), (words, found.output, found.exception)
    assert found.stderr == ""
    return found.stdout


def laid_out(printed: str) -> str:
    """For people, and for the comparison of two revisions of this project."""
    return json.dumps(json.loads(printed), indent=1, ensure_ascii=False) + "\n"


def recorded(name: str) -> dict[str, str]:
    twin = FLEETS / name / SAME_AS
    if twin.exists():
        path = twin.read_text().strip() + PLAN
        return {path: (FLEETS / path).read_text()}
    return {
        path.relative_to(FLEETS).as_posix(): path.read_text()
        for path in sorted((FLEETS / name).iterdir())
        if path.name.endswith((PLAN, DIFF))
    }
