"""A fleet directory to `Documents`: which files are documents, and what each module asks for.

Reads through `Tree` only, so that a directory and a recorded revision are read alike.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from keyplane.documents import computing, facts, fleets, interfaces, modules, text
from keyplane.documents.evaluation import Call, Evaluate, Fault, Run
from keyplane.documents.rows import Path, Rows, show
from keyplane.documents.shapes import name_complaint
from keyplane.documents.spending import Spending
from keyplane.documents.text import Unreadable
from keyplane.model.documents import Documents
from keyplane.model.fleet import FactSnapshot, Fleet
from keyplane.model.interface import Interface
from keyplane.model.module import Json, Module

SPELLINGS = ("toml", "json", "star")
_OWN_DOCUMENTS = ("interfaces.toml", *(f"module.{spelling}" for spelling in SPELLINGS))
"""A module's documents are no source of what is built in its directory: a new version or another
description is no reason to build anew, and the spelling is nothing at all."""


class Tree(Protocol):
    """The files of a fleet. Paths are relative to it, with `/`."""

    def names(self, folder: str) -> tuple[str, ...] | Unreadable:
        """What stands directly in a folder, sorted; empty where nothing of that name stands."""
        ...

    def read(self, path: str) -> bytes | Unreadable | None:
        """A document's bytes; None where nothing of that name stands."""
        ...

    def shipped(self, folder: str, path: str) -> bytes | Unreadable:
        """A file below a folder, reached by no link and standing inside it."""
        ...

    def digest(self, folder: str, path: str, without: Collection[str] = ()) -> str | Unreadable:
        """The digest of the deterministic tar of a directory below a folder, likewise.

        Files of the names `without` that stand directly in it do not count.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a fleet's files say."""

    documents: Documents
    evaluate: Evaluate
    """For the roles that a function computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    rows: Rows
    tree: dict[str, Json] | None
    computed: tuple[str, ...] = ()
    sources: Mapping[str, str] | None = None


def read(tree: Tree, snapshots: Mapping[str, bytes | Unreadable], run: Run) -> Reading:
    """Everything at once, each problem a row. `snapshots` has the facts files by their path."""
    return _Reader(tree, run).read(snapshots)


class _Reader:
    def __init__(self, tree: Tree, run: Run) -> None:
        self._tree = tree
        self._run = run
        self._spending = Spending()
        self._rows: list[Rows] = []
        self._rows_by_file: dict[str, Rows] = {}
        self._modules: dict[str, Module] = {}
        self._broken: set[str] = set()
        self._starlark: dict[str, Mapping[str, str]] = {}
        self._shipped: dict[tuple[str, str], bytes] = {}
        self._artifacts: dict[tuple[str, str], str] = {}

    def read(self, snapshots: Mapping[str, bytes | Unreadable]) -> Reading:
        fleet = self._fleet()
        folders = self._folders()
        for folder in folders:
            self._module(folder)
        for module in self._modules.values():
            self._files(module)
        for module in self._modules.values():
            for name in module.build.bundles:
                self._bundle(module, name)
        known = self._interfaces(folders)
        snapshot = self._facts(snapshots, fleet)
        documents = Documents(
            fleet=fleet,
            modules=self._modules,
            interfaces=known,
            facts=snapshot,
            shipped=self._shipped,
            artifacts=self._artifacts,
            broken=frozenset(self._broken),
            starlark=self._starlark,
            dropped={rows.file: rows.dropped for rows in self._rows if rows.dropped},
            diagnostics=tuple(row for rows in self._rows for row in rows.found),
        )
        evaluate = computing.evaluator(self._starlark, self._tree.shipped, self._run)
        return Reading(documents=documents, evaluate=evaluate)

    def _fleet(self) -> Fleet | None:
        loaded = self._load("", "fleet")
        if loaded is None or loaded.tree is None:
            return None
        return fleets.read(loaded.tree, loaded.rows)

    def _folders(self) -> tuple[str, ...]:
        names = self._tree.names("modules")
        if isinstance(names, Unreadable):
            self._new_rows("modules").add("unreadable", (), names.message)
            return ()
        return names

    def _module(self, folder: str) -> None:
        loaded = self._load(f"modules/{folder}/", "module")
        if loaded is None:
            return
        complaint = name_complaint(folder)
        if complaint is not None:
            loaded.rows.wrong((), f"the module's directory: {complaint}")
        module = None
        if loaded.tree is not None and complaint is None:
            module = modules.read(
                loaded.tree, name=folder, rows=loaded.rows, computed=loaded.computed
            )
        if module is None:
            self._broken.add(folder)
            return
        self._modules[folder] = module
        if loaded.computed and loaded.sources is not None:
            self._starlark[folder] = loaded.sources

    def _interfaces(self, folders: tuple[str, ...]) -> dict[str, Interface]:
        known: dict[str, tuple[Interface, str]] = {}
        for folder in ("", *(f"modules/{name}/" for name in folders)):
            file = f"{folder}interfaces.toml"
            data = self._tree.read(file)
            if data is None:
                continue
            rows = self._new_rows(file)
            tree = self._parsed(data, "toml", rows)
            if tree is None:
                rows.drop(())
            else:
                interfaces.merge(known, interfaces.read(tree, rows), rows)
        return {name: one for name, (one, _) in known.items()}

    def _facts(
        self, snapshots: Mapping[str, bytes | Unreadable], fleet: Fleet | None
    ) -> dict[str, FactSnapshot]:
        found: dict[str, FactSnapshot] = {}
        for file, data in sorted(snapshots.items()):
            rows = self._new_rows(file)
            tree = self._parsed(data, "json", rows)
            if tree is None:
                continue
            name = file.rpartition("/")[2].removesuffix(".json")
            one = facts.read(tree, name=name, rows=rows)
            if one is None:
                continue
            if fleet is None or name in fleet.machines:
                found[name] = one
            elif not self._rows_by_file[fleet.file].was_dropped(("machines", name)):
                rows.add(
                    "unknown-machine",
                    ("machine",),
                    f"the snapshot is of {show(name)}, which is no machine of the fleet",
                )
        return found

    def _load(self, folder: str, stem: str) -> _Loaded | None:
        """A document in whichever spelling it stands; None where it stands in none."""
        there = {
            file: (spelling, data)
            for spelling in SPELLINGS
            if (data := self._tree.read(file := f"{folder}{stem}.{spelling}")) is not None
        }
        if not there:
            return None
        file = next(iter(there))
        rows = self._new_rows(file)
        if len(there) > 1:
            listed = " and ".join(there)
            rows.add("unreadable", (), f"{listed} are spellings of one document", "keep one")
            return _Loaded(rows=rows, tree=None)
        spelling, data = there[file]
        if spelling == "star" and isinstance(data, bytes):
            return self._computed(file, stem, rows)
        return _Loaded(rows=rows, tree=self._parsed(data, spelling, rows))

    def _computed(self, file: str, function: str, rows: Rows) -> _Loaded:
        sources = computing.sources(file, self._tree.read)
        if isinstance(sources, Unreadable):
            rows.add("unreadable", (), sources.message)
            return _Loaded(rows=rows, tree=None)
        if file not in sources:
            rows.add("unreadable", (), "not UTF-8")
            return _Loaded(rows=rows, tree=None)
        refusal = self._spending.refusal()
        if refusal is not None:
            rows.add("starlark", (), f"{file}: {refusal}", "mend those first")
            return _Loaded(rows=rows, tree=None)
        found = self._run(Call(sources=sources, file=file, function=function))
        self._spending.ran(file, found)
        if isinstance(found, Fault):
            computing.add_fault(rows, found)
            return _Loaded(rows=rows, tree=None)
        tree = text.judged(found.tree)
        if isinstance(tree, Unreadable):
            rows.add("unreadable", (), tree.message)
            return _Loaded(rows=rows, tree=None)
        text.sweep(tree, rows)
        return _Loaded(rows=rows, tree=tree, computed=found.impls, sources=sources)

    def _parsed(
        self, data: bytes | Unreadable, spelling: str, rows: Rows
    ) -> dict[str, Json] | None:
        tree = data if isinstance(data, Unreadable) else text.parse(data, spelling=spelling)
        if isinstance(tree, Unreadable):
            rows.add("unreadable", (), tree.message)
            return None
        text.sweep(tree, rows)
        return tree

    def _new_rows(self, file: str) -> Rows:
        rows = self._rows_by_file[file] = Rows(file)
        self._rows.append(rows)
        return rows

    def _rows_of(self, module: Module) -> Rows:
        return self._rows_by_file[module.file]

    def _files(self, module: Module) -> None:
        """What the module ships, and the digests of what it builds, bundles aside."""
        rows = self._rows_of(module)
        directory = f"modules/{module.name}"
        for file, path in modules.shipped_files(module):
            data = self._tree.shipped(directory, file)
            if isinstance(data, Unreadable):
                rows.add("unreadable", path, data.message)
            else:
                self._shipped[module.name, file] = data
        build = module.build
        for name, folder in build.archives.items():
            path = ("build", "archives", name, "directory")
            digest = self._digest(module, folder, path)
            if digest is not None:
                self._artifacts[module.name, name] = digest
        for name, image in build.images.items():
            path = ("build", "images", name, "context")
            self._define(module, name, {"image": image}, (image.get("context", "."), path))
        for name, image in build.upstream.items():
            self._define(module, name, {"upstream": image})
        for name, nix in build.nix.items():
            source = (".", ("build", "nix", name)) if "expression" in nix else None
            self._define(module, name, {"nix": nix}, source)

    def _bundle(self, module: Module, name: str) -> None:
        """The digest of a bundle, its toolchain's first: one that moves makes the bundle anew.

        In a circle of toolchains the last that is come to has none.
        """
        chain: dict[tuple[str, str], Module] = {}
        maker: Module | None = module
        here = (module.name, name)
        while maker is not None and here not in self._artifacts and here not in chain:
            bundle = maker.build.bundles.get(here[1])
            if bundle is None:
                break
            chain[here] = maker
            owner, _, artifact = str(bundle["toolchain"]).partition("/")
            maker, here = self._modules.get(owner), (owner, artifact)
        for (_, bundle_name), maker in reversed(chain.items()):
            bundle = maker.build.bundles[bundle_name]
            owner, _, artifact = str(bundle["toolchain"]).partition("/")
            toolchain = self._artifacts.get((owner, artifact))
            definition = {"bundle": bundle, "toolchain": toolchain}
            source: tuple[str, Path] = (".", ("build", "bundles", bundle_name))
            self._define(maker, bundle_name, definition, source)

    def _define(
        self, module: Module, name: str, definition: Json, source: tuple[str, Path] | None = None
    ) -> None:
        """The digest of what an artifact would be built from."""
        digest = "" if source is None else self._digest(module, *source, _OWN_DOCUMENTS)
        if digest is not None:
            said = {"definition": definition, "source": digest}
            canonical = json.dumps(
                said, sort_keys=True, separators=(",", ":"), ensure_ascii=False
            ).encode()
            made = "sha256-" + hashlib.sha256(canonical).hexdigest()
            self._artifacts[module.name, name] = made

    def _digest(
        self, module: Module, folder: str, path: Path, documents: Collection[str] = ()
    ) -> str | None:
        is_whole = not any(part not in ("", ".") for part in folder.split("/"))
        without = documents if is_whole else ()
        digest = self._tree.digest(f"modules/{module.name}", folder, without)
        if isinstance(digest, Unreadable):
            self._rows_of(module).add("unreadable", path, digest.message)
            return None
        return digest
