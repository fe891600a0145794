"""A fleet in memory, and what reading it says."""

from collections.abc import Collection, Mapping

from keyplane.documents import reading
from keyplane.documents.evaluation import Call, Fault
from keyplane.documents.text import Unreadable
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.documents import Documents

FLEET = 'fleet = "arena"\n'


class Files:
    """`documents.reading.Tree` over a map of files; a directory's digest is its name."""

    def __init__(self, files: Mapping[str, str | bytes]) -> None:
        self._files = {
            path: text.encode() if isinstance(text, str) else text for path, text in files.items()
        }

    def names(self, folder: str) -> tuple[str, ...]:
        prefix = folder + "/"
        below = [path[len(prefix) :] for path in self._files if path.startswith(prefix)]
        return tuple(sorted({path.split("/")[0] for path in below}))

    def read(self, path: str) -> bytes | Unreadable | None:
        return self._files.get(path)

    def shipped(self, folder: str, path: str) -> bytes | Unreadable:
        return self._files.get(f"{folder}/{path}", Unreadable(f"there is no {path}"))

    def digest(self, folder: str, path: str, without: Collection[str] = ()) -> str | Unreadable:
        inside = folder if path == "." else f"{folder}/{path}"
        if not self.names(inside):
            return Unreadable(f"there is no {path}")
        return f"sha256-{inside}"


def no_starlark(call: Call) -> Fault:
    return Fault(message="refused", file=call.file, line=1, column=2, source="x = 1")


def read(files: Mapping[str, str | bytes]) -> Documents:
    """With a fleet document, unless there is one in another spelling."""
    snapshots = {
        path: text.encode() if isinstance(text, str) else text
        for path, text in files.items()
        if path.startswith("facts/")
    }
    whole = files if "fleet.json" in files else {"fleet.toml": FLEET, **files}
    return reading.read(Files(whole), snapshots, no_starlark).documents


def of_module(text: str) -> Documents:
    """The documents with one module `solo`, whose name and version are said already."""
    return read({"modules/solo/module.toml": f'module = "solo"\nversion = "1"\n{text}'})


def rows(documents: Documents) -> set[tuple[str, str, str]]:
    return {(row.code, row.subject, row.path) for row in documents.diagnostics}


def paths(documents: Documents) -> set[tuple[str, str]]:
    return {(row.code, row.path) for row in documents.diagnostics}


def row(documents: Documents, code: str) -> Diagnostic:
    (found,) = [row for row in documents.diagnostics if row.code == code]
    return found
