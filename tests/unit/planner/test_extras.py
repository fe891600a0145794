"""What an entry carries beside its units: sources of exports, files of grants, verbs of seats."""

import pytest

from tests.unit.planner import fleets as f

HERE = f.machines("alpha")
SRC = '[src.exports]\nlive = "string"\n'
ROLE = f.UNIT + '[roles.main.provides.src]\ninterface = "src"\nscope = "mesh"\n'


def plan(more: str) -> f.Plan:
    return f.plan_of(HERE + f.instance("app", "app", "alpha"), {"app": ROLE + more}, SRC)


@pytest.mark.parametrize(
    "source",
    [
        '{ file = "/run/${nonsense}" }',
        '{ command = ["cat", "${settings.none}"], every = "10s" }',
        '{ command = ["cat", "${machine.facts.never}"], every = "10s" }',
    ],
)
def test_no_agent_reads_a_source_of_which_a_part_is_unknown(source: str) -> None:
    """The row is there, and the export is not published."""
    made = plan(f'exports.live = {{ source = {source}, lifecycle = "dynamic" }}\n')
    assert [row.path.partition("[")[0] for row in made.diagnostics] == [
        f"provides.src.exports.live.source.{'file' if 'file' in source else 'command'}"
    ]
    assert not made.entries["app:main@alpha"].publishes


def test_a_source_is_filled_in() -> None:
    live = 'exports.live = { source = { file = "/run/${machine.name}" }, lifecycle = "dynamic" }\n'
    made = plan(live)
    assert made.diagnostics == []
    assert made.entries["app:main@alpha"].publishes == {
        "src/live": {"file": "/run/alpha", "type": "string"}
    }


def test_no_file_of_grants_stands_where_a_part_of_its_path_is_unknown() -> None:
    live = 'exports.live = { source = { published = true }, lifecycle = "dynamic" }\n'
    made = plan(f'grants = "/etc/${{settings.none}}"\n{live}')
    assert [row.path for row in made.diagnostics] == ["provides.src.grants"]
    assert not made.entries["app:main@alpha"].grants
