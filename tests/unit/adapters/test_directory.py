"""The edge that reads a fleet directory, and revisions."""

import os
from pathlib import Path

import pytest

from keyplane.adapters import directory, export
from keyplane.adapters.directory import DirectoryUnreadableError
from keyplane.documents.evaluation import Call, Fault
from keyplane.model.documents import Documents

MODULE = """
module = "solo"
version = "1"
[roles.main.units.u]
kind = "process"
command = ["x"]
archive = "code"
configData."/etc/x" = { file = "conf/x" }
[build.archives.code]
directory = "src"
"""


def no_starlark(call: Call) -> Fault:
    return Fault(message="refused", file=call.file, line=1, column=1, source="")


def read(path: Path, facts: Path | None = None) -> Documents:
    return directory.read(path, facts, no_starlark).documents


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    root = tmp_path / "fleet"
    files = {
        "fleet.toml": 'fleet = "arena"\nmachines.alpha.address = "10.0.0.3"\n',
        "facts/alpha.json": '{"machine": "alpha", "facts": {"a": 1}}',
        "facts/README": "not a snapshot",
        "modules/solo/module.toml": MODULE,
        "modules/solo/conf/x": "hello",
        "modules/solo/src/a/run": "#!/bin/sh\n",
        "modules/solo/src/b": "b",
        ".keyplane/state": "not of the fleet",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "modules/solo/src/empty").mkdir()
    (root / "modules/solo/src/a/run").chmod(0o700)
    (root / "modules/solo/src/link").symlink_to("a/run")
    return root


def test_a_directory_is_read(fleet: Path):
    """Documents, shipped files, artifacts and facts."""
    documents = read(fleet)
    assert documents.diagnostics == ()
    assert documents.shipped == {("solo", "conf/x"): b"hello"}
    assert documents.facts["alpha"].facts == {"a": 1}
    assert documents.artifacts["solo", "code"].startswith("sha256-")


def test_a_recorded_revision_reads_as_its_directory(fleet: Path, tmp_path: Path):
    """Executable bits, links and empty folders are part of it, the state beside it is not."""
    revision = directory.read_revision(fleet)
    assert ".keyplane/state" not in revision
    assert directory.documents_of(revision, no_starlark).documents == read(fleet)
    export.export(tmp_path / "copy", revision, None, force=False)
    assert read(tmp_path / "copy") == read(fleet)
    assert directory.read_revision(tmp_path / "copy") == revision


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "modules/solo/src/b").write_text("c"),
        lambda root: (root / "modules/solo/src/b").chmod(0o755),
        lambda root: (root / "modules/solo/src/c").write_text(""),
        lambda root: (root / "modules/solo/src/empty").rmdir(),
        lambda root: (root / "modules/solo/src/b").rename(root / "modules/solo/src/d"),
    ],
)
def test_an_archive_moves_with_its_content(fleet: Path, change):
    """Each of these is another artifact."""
    before = read(fleet).artifacts
    change(fleet)
    assert read(fleet).artifacts != before


def test_an_archive_does_not_move_with_times_or_other_modes(fleet: Path):
    """Two checkouts of one commit have one digest."""
    before = read(fleet).artifacts
    os.utime(fleet / "modules/solo/src/b", (1, 1))
    (fleet / "modules/solo/src/b").chmod(0o600)
    (fleet / "modules/solo/conf/x").write_text("other")
    assert read(fleet).artifacts == before


@pytest.mark.parametrize("as_revision", [False, True])
def test_what_is_built_of_a_whole_module_does_not_move_with_its_documents(
    fleet: Path, as_revision: bool
):
    """Another version or spelling is no reason to build anew; its other files are."""

    def digest() -> str:
        if not as_revision:
            return read(fleet).artifacts["web", "image"]
        files = directory.read_revision(fleet)
        return directory.documents_of(files, no_starlark).documents.artifacts["web", "image"]

    web = fleet / "modules/web"
    web.mkdir()
    (web / "Dockerfile").write_text("FROM scratch\n")
    said = 'module = "web"\nversion = "{}"\n[build.images.image]\ndockerfile = "Dockerfile"\n'
    (web / "module.toml").write_text(said.format(1))
    before = digest()
    (web / "module.toml").write_text(said.format(2))
    (web / "interfaces.toml").write_text("")
    assert digest() == before
    (web / "Dockerfile").write_text("FROM other\n")
    assert digest() != before


def test_names_of_any_bytes_are_rows(fleet: Path):
    """A row is printed as UTF-8, whatever the name of a file is."""
    odd = os.fsdecode(b"m\xff")
    (fleet / "modules" / odd).mkdir()
    (fleet / "modules" / odd / "module.toml").write_text("")
    (fleet / "facts" / f"{odd}.json").write_text('{"machine": "x", "facts": {}}')
    found = {row.subject for row in read(fleet).diagnostics}
    assert {"modules/m\\udcff/module.toml", "facts/m\\udcff.json"} <= found


def test_facts_from_elsewhere_replace_those_beside(fleet: Path, tmp_path: Path):
    """Rows name them by where they were said to be."""
    elsewhere = tmp_path / "snapshots"
    elsewhere.mkdir()
    (elsewhere / "beta.json").write_text('{"machine": "beta", "facts": {}}')
    documents = read(fleet, elsewhere)
    assert documents.facts == {}
    (row,) = documents.diagnostics
    assert (row.code, row.subject) == ("unknown-machine", f"{elsewhere}/beta.json")


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_no_directory_is_unreadable(tmp_path: Path, name: str):
    """It ends the command, with a message."""
    (tmp_path / "file").write_text("{}")
    with pytest.raises(DirectoryUnreadableError, match=name):
        read(tmp_path / name)


def test_no_fleet_document_is_unreadable(tmp_path: Path):
    """Another spelling is none."""
    (tmp_path / "fleet.yaml").write_text("fleet: arena")
    with pytest.raises(DirectoryUnreadableError, match=r"fleet\.toml"):
        read(tmp_path)


def test_no_folder_of_facts_is_unreadable(fleet: Path):
    """It was asked for by name."""
    with pytest.raises(DirectoryUnreadableError, match="facts"):
        read(fleet, fleet / "nowhere")


def replace_with_link(path: Path, target: str) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("link", "target"),
    [("conf/x", "moved"), ("conf", "moved"), ("conf/x", "/etc/hostname"), ("conf/x", "gone")],
)
def test_a_shipped_file_reached_by_a_link_is_a_row(fleet: Path, link: str, target: str):
    """Wherever the link leads."""
    replace_with_link(fleet / "modules/solo" / link, target)
    for documents in (
        read(fleet),
        directory.documents_of(directory.read_revision(fleet), no_starlark).documents,
    ):
        (row,) = documents.diagnostics
        assert (row.code, row.path) == ("unreadable", "roles.main.units.u.configData./etc/x.file")
        assert "link" in row.message


@pytest.mark.parametrize("target", ["/etc/hostname", "../../../fleet.toml"])
def test_an_archive_with_a_link_that_leads_out_is_a_row(fleet: Path, target: str):
    """It would be another file on every machine."""
    (fleet / "modules/solo/src/out").symlink_to(target)
    for documents in (
        read(fleet),
        directory.documents_of(directory.read_revision(fleet), no_starlark).documents,
    ):
        (row,) = documents.diagnostics
        assert (row.code, row.path) == ("unreadable", "build.archives.code.directory")
        assert "out" in row.message


def test_an_archive_that_is_not_there_is_a_row(fleet: Path):
    """With the path of the directory that is asked for."""
    (fleet / "modules/solo/src").rename(fleet / "modules/solo/source")
    (row,) = read(fleet).diagnostics
    assert (row.code, row.path) == ("unreadable", "build.archives.code.directory")


def test_a_document_that_is_a_directory_or_leads_out_is_a_row(fleet: Path, tmp_path: Path):
    """Nothing of the world outside is read."""
    (tmp_path / "outside.toml").write_text(MODULE)
    (fleet / "modules/linked").mkdir()
    (fleet / "modules/linked/module.toml").symlink_to(tmp_path / "outside.toml")
    (fleet / "modules/folder/module.json").mkdir(parents=True)
    os.mkfifo(fleet / "interfaces.toml")
    assert {(row.code, row.subject) for row in read(fleet).diagnostics} == {
        ("unreadable", "modules/linked/module.toml"),
        ("unreadable", "modules/folder/module.json"),
        ("unreadable", "interfaces.toml"),
    }


def test_a_revision_cannot_be_written_outside(tmp_path: Path):
    """Its names are data from others."""
    for name in ("../x", "/etc/x", "a/../../x"):
        with pytest.raises(DirectoryUnreadableError, match="leads out"):
            export.export(tmp_path / "copy", {name: b""}, None, force=False)


def test_folders_reached_by_links_inside_the_fleet_read_alike(fleet: Path):
    """A recorded revision of them plans as the directory does."""
    for name in ("modules/solo", "modules", "facts/alpha.json", "facts"):
        moved = fleet / f"moved-{name.replace('/', '-')}"
        (fleet / name).rename(moved)
        (fleet / name).symlink_to(os.path.relpath(moved, (fleet / name).parent.resolve()))
    documents = read(fleet)
    assert (set(documents.modules), documents.diagnostics) == ({"solo"}, ())
    assert documents.facts["alpha"].facts == {"a": 1}
    revision = directory.read_revision(fleet)
    assert directory.documents_of(revision, no_starlark).documents == documents


@pytest.mark.parametrize("name", ["modules", "facts"])
@pytest.mark.parametrize(
    ("target", "message"),
    [(None, "not a directory"), ("/proc", "link that leads"), ("none", "leads nowhere")],
)
def test_a_folder_that_is_none_is_a_row(fleet: Path, name: str, target: str | None, message: str):
    """Whether or not the fleet asks for anything in it."""
    (fleet / name).rename(fleet / "moved")
    if target is None:
        (fleet / name).write_text("x")
    else:
        (fleet / name).symlink_to(target)
    for documents in (
        read(fleet),
        directory.documents_of(directory.read_revision(fleet), no_starlark).documents,
    ):
        (row,) = documents.diagnostics
        assert (row.code, row.subject) == ("unreadable", name)
        assert message in row.message
