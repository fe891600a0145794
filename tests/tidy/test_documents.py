"""The documents speak of what is there."""

import re
import tomllib
from pathlib import Path

import pytest

from keyplane.cli import registry
from tests.tidy import tree

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
ADR_PARTS = ("Context", "Choice", "What it costs", "When to revisit")

PROJECT = tomllib.loads((tree.ROOT / "pyproject.toml").read_text())


def links(path: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    return [first or second for first, second in LINK.findall(text)]


def anchors(path: Path) -> set[str]:
    """As forges make them: lower case, no punctuation, dashes for spaces."""
    headings = re.findall(r"^#+ +(.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in headings}


def broken(path: Path) -> list[str]:
    gone = []
    for link in links(path):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place) if place else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            gone.append(f"{tree.name(path)}: {link}")
    return gone


def test_every_link_leads_somewhere() -> None:
    documents = tree.files(".md")
    assert sum(len(links(path)) for path in documents) > 5
    assert not [each for path in documents for each in broken(path)]


def dependencies() -> set[str]:
    asked = PROJECT["project"]["dependencies"] + PROJECT["dependency-groups"]["dev"]
    return {re.split(r"[\[><=~! ]", each)[0] for each in asked}


def test_every_dependency_has_its_reason() -> None:
    """And no reason is left of one that is gone."""
    text = (tree.ROOT / "docs" / "dependencies.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)) == dependencies()


def test_every_dependency_is_locked() -> None:
    text = (tree.ROOT / "requirements.lock").read_text()
    assert dependencies() <= set(re.findall(r"^([a-z0-9-]+)==", text, re.MULTILINE))


def test_every_command_is_told_of() -> None:
    """In the README or below docs, by the words that a person types."""
    told = "\n".join(
        path.read_text() for path in [tree.ROOT / "README.md", *tree.files(".md", below="docs")]
    )
    untold = [each for each in registry.COMMANDS if f"keyplane {each}" not in told]
    assert registry.COMMANDS
    assert not untold


@pytest.mark.parametrize("path", tree.files(".md", below="docs/adr"), ids=lambda path: path.stem)
def test_a_record_of_a_decision_says_all_four_things(path: Path) -> None:
    text = path.read_text()
    assert re.match(r"\d{4}-[a-z0-9-]+\.md$", path.name)
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == ADR_PARTS
    assert len(text.splitlines()) <= 60  # one page


def test_records_of_decisions_are_numbered_in_a_row() -> None:
    numbers = [int(path.name[:4]) for path in tree.files(".md", below="docs/adr")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_the_changelog_knows_the_version() -> None:
    text = (tree.ROOT / "CHANGELOG.md").read_text()
    assert f"## {PROJECT['project']['version']}" in text
