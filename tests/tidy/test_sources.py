"""What no formatter sees: sizes, names, and words that belong nowhere here."""

import ast
import re
from pathlib import Path

from tests.tidy import tree

LINES_MAX = 400  # past this a file has two subjects, and the second is found by nobody
PROSE = (".md", ".py", ".c", ".h", ".sh", ".toml", ".star", ".json", ".lock", "Makefile", "run")

# Names that say nothing of what a thing is.
EMPTY = re.compile(r"manager|helper|(^|_)utils?($|_)|(^|_)handle($|_)", re.IGNORECASE)
# Said by the field itself: systemd is a service manager, and requests are HTTP's to name.
FIELD = {"ServiceManager", "service_manager"}

# A letter in brackets here and there, so that this file does not break its own rule.
UNWANTED = {
    r"https?://\S+(/simple\b|/packages/|\.whl\b|\.deb\b|\.tgz\b)": "where a package is fetched from",
    r"(?<![\w.])/(wor[k]|far[m])/": "a path of one machine",
    r"\b(issue|ticket) #?[\d]": "a number of some tracker",
    r"\b(this|last|next|earlier|previous) sess[i]on": "a word on how the work was done",
    r"\b(TOD[O]|FIXM[E]|XX[X])\b": "work that is not done",
}


def test_every_file_of_source_has_one_subject() -> None:
    long = {
        tree.name(path): lines
        for path in tree.files(".py", ".c", ".h", below="src")
        if (lines := path.read_text().count("\n")) > LINES_MAX
    }
    assert not long


def test_every_module_says_what_it_is() -> None:
    """Tests and examples too; an empty file needs no words."""
    silent = [
        tree.name(path)
        for path in tree.files(".py")
        if (text := path.read_text()).strip() and ast.get_docstring(ast.parse(text)) is None
    ]
    assert not silent


def definitions(path: Path) -> list[str]:
    named = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = ast.walk(ast.parse(path.read_text()))
    return [path.stem, *(node.name for node in nodes if isinstance(node, named))]


def test_names_say_what_a_thing_is() -> None:
    empty = [
        f"{tree.name(path)}: {name}"
        for path in tree.files(".py", below="src")
        for name in definitions(path)
        if EMPTY.search(name) and name not in FIELD
    ]
    assert not empty


def test_no_end_of_a_task_is_swallowed() -> None:
    """As `wait_for` does below Python 3.12, where it is cancelled just as what it waits for is done."""
    found = [
        f"{tree.name(path)}:{number}: use asyncio.timeout"
        for path in tree.files(".py", below="src")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "asyncio.wait_for(" in line
    ]
    assert not found


def test_nothing_written_here_speaks_of_how_or_where_it_was_written() -> None:
    found = [
        f"{tree.name(path)}:{number}: {what}"
        for path in tree.files(*PROSE)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for pattern, what in UNWANTED.items()
        if re.search(pattern, line)
    ]
    assert not found


def test_the_lock_file_pins_everything_by_digest_and_names_no_place() -> None:
    text = (tree.ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^(\S+)==(\S+).*\\\n +--hash=sha256:", text, re.MULTILINE)
    starts = re.findall(r"^[a-z]\S*", text, re.MULTILINE)
    assert len(pins) == len(starts) > 40
    assert "://" not in text
    assert "--index" not in text
