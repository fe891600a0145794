"""Round derive: the plane of each value, by its lifecycle and by where the role put it.

Nobody writes a plane down. Three cells are refused, each with a row; what is refused stays as it
was written.
"""

from collections.abc import Mapping

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_table
from keyplane.model.module import Follow, Json, Lifecycle
from keyplane.planner import (
    canonical,
    contracts,
    derive_rows,
    extras,
    handovers,
    names,
    shapes,
    terms,
)
from keyplane.planner.compiled import (
    CompiledBody,
    CompiledConfig,
    CompiledUnit,
    places,
    slots_read,
)
from keyplane.planner.draft import Draft, Offer, Target
from keyplane.planner.looks import Seen, Term
from keyplane.planner.program import Contract, Family, Gap, Program, UnitProgram
from keyplane.planner.rows import ENTRY, Fault, did_you_mean
from keyplane.planner.scope import Scope
from keyplane.planner.terms import Hole, Live, Lost, Own, OwnKind, Parts, Tree

TEXT_FIELDS = frozenset(
    {"command", "user", "workingDirectory", "image", "unit", "schedule", "archive", "bundle",
     "nix", "file", "whileStopped", "mounts"}
)  # fmt: skip
"""Where everything is a string; the other fields keep the types of what they refer to."""
_ARTIFACTS = ("archive", "bundle", "nix", "image")
_PERIODS = frozenset({"stopTimeout", "interval", "timeout", "startPeriod"})


def derive(draft: Draft, family: Family, body: CompiledBody) -> tuple[Program, list[Fault]]:
    return _Deriving(draft, family, body).program()


class _Deriving:
    def __init__(self, draft: Draft, family: Family, body: CompiledBody) -> None:
        self.draft = draft
        self.family = family
        self.assignment = family.assignment
        self.body = body
        self.faults: list[Fault] = []
        seen = Seen(
            machine=None,
            sample=family.machines[0],
            states=family.states,
            faults=self.faults,
        )
        self.scope = Scope(draft, family.assignment, seen)
        self.targets: dict[Target, None] = {}
        self.unit_targets: dict[Target, None] = {}
        self.dynamic_paths: set[str] = set()
        self.unit_paths: set[str] = set()
        self.artifacts: dict[str, str] = {}
        self.lost: set[str] = set()
        """Where a reference has no value that may stand there, which is a row."""

    def program(self) -> tuple[Program, list[Fault]]:
        role, compiled = self.assignment.role, self.assignment.compiled
        units = tuple(self._unit(unit) for unit in self.body.units)
        resources = {name: self._resource(name, tree) for name, tree in compiled.resources.items()}
        volumes = {
            name: {"path": self._closed(tree, f"volumes.{name}.path", text=True)}
            for name, tree in compiled.volumes.items()
        }
        listens: dict[str, Tree] = {}
        for name in sorted(role.listens):
            own = Own(OwnKind.PORT, name, self.assignment.id)
            if own not in self.family.states:
                listens[name] = (own,)
        program = Program(
            units=units,
            resources=resources,
            volumes=volumes,
            listens=listens,
            requirements=tuple(
                self._requirement(index, tree) for index, tree in enumerate(self.body.requirements)
            ),
            artifacts=dict(sorted(self.artifacts.items())),
            targets=tuple(self.targets),
            requests={
                slot: {
                    name: self._closed(tree, f"uses.{slot}.request.{name}", keyed=False)
                    for name, tree in request.items()
                }
                for slot, request in compiled.requests.items()
            },
            extras=extras.extras(
                self.family,
                lambda tree, path: self._closed(tree, path, text=True, keyed=False),
                self._whole,
            ),
            dynamic_paths=frozenset(self.dynamic_paths),
            unit_paths=frozenset(self.unit_paths),
            reads=self._reads(),
        )
        return program, self.faults

    def _unit(self, unit: CompiledUnit) -> UnitProgram:
        self.unit_targets = {}
        path = f"units.{unit.name}"
        fields: dict[str, Tree] = {}
        for name, tree in unit.fields.items():
            text = name in TEXT_FIELDS
            fields[name] = self._closed(tree, f"{path}.{name}", unit=True, text=text)
        if isinstance(fields.get("publish"), dict):
            fields["publish"] = self._published(fields["publish"])
        artifacts = self._unit_artifacts(unit, fields)
        if isinstance(fields.get("file"), str):
            content = self.draft.file(self.assignment.module.name, fields["file"])
            if content is not None:
                fields["fileDigest"] = self._content(content)
        env: dict[str, Tree | Gap] = {}
        dynamic: dict[str, Contract] = {}
        configs: dict[str, Parts | str | Gap] = {}
        for name, tree in unit.env.items():
            found = self._env(tree, f"{path}.env.{name}")
            if isinstance(found, Contract):
                dynamic[name] = found
            elif found is not None:
                env[name] = found
        targets = tuple(self.unit_targets)
        for name, config in unit.configs.items():
            found = self._config(config, f"{path}.configData.{name}")
            if isinstance(found, Contract):
                dynamic[name] = found
            elif found is not None:
                configs[name] = found
        holes = [name for name, value in (*env.items(), *configs.items()) if isinstance(value, Gap)]
        live = {name: self._live(name, tree, f"{path}.{name}") for name, tree in unit.live.items()}
        reactions = self._secret_reactions(unit)
        if reactions:
            live["secretReactions"] = reactions
        why, faults = handovers.overruled(self.assignment.role, unit.name, live)
        if why:
            live["stopFirst"] = why
        names_here = [each.name for each in self.body.units]
        self.faults += [*faults, *handovers.in_vain(unit.name, live, names_here)]
        return UnitProgram(
            name=unit.name,
            kind=unit.kind.value,
            fields=shapes.sorted_lists(fields),
            env=env,
            configs=configs,
            dynamic=dict(sorted(dynamic.items())),
            live=live,
            artifacts=artifacts,
            targets=targets,
            holes=tuple(f"{unit.name}.{name}" for name in holes),
        )

    def _closed(
        self, tree: Tree, path: str, *, unit: bool = False, text: bool = False, keyed: bool = True
    ) -> Tree:
        """A tree of the closure plane: static values only."""
        filled = self._filled(tree, path, unit=unit, text=text, keyed=keyed)
        if terms.is_text(filled) and any(isinstance(part, Lost) for part in filled):
            self.lost.add(path)
        return shapes.as_written(filled)

    def _whole(self, tree: Tree, path: str) -> Tree | None:
        """A tree of texts out of the key; None if anything in it cannot be resolved."""
        filled = self._filled(tree, path, unit=False, text=True, keyed=False)
        parts = (part for _, text in terms.texts_in(filled, path) for part in text)
        return None if any(isinstance(part, Lost) for part in parts) else shapes.as_written(filled)

    def _filled(self, tree: Tree, path: str, *, unit: bool, text: bool, keyed: bool) -> Tree:
        def judge(reference: Reference, term: Term) -> Parts:
            self._note(reference, term, unit=unit)
            if term.lifecycle is Lifecycle.STATIC:
                if keyed:
                    self._depend(reference, term, unit=unit)
                return term.parts
            self.faults.append(derive_rows.refused(reference, term.lifecycle, path))
            return (Lost(str(reference)),)

        return self.scope.fill(tree, judge, text=text)

    def _env(self, tree: Tree, path: str) -> Tree | Gap | Contract | None:
        def judge(reference: Reference, term: Term) -> Parts:
            self._note(reference, term, unit=True)
            if term.lifecycle is not Lifecycle.DYNAMIC:
                self._depend(reference, term, unit=True)
            return term.parts

        return self._open(tree, self.scope.fill(tree, judge, text=True), path)

    def _config(self, config: CompiledConfig, path: str) -> Parts | str | Gap | Contract | None:
        if config.file is not None:
            content = self.draft.file(self.assignment.module.name, config.file)
            return None if content is None else self._content(content)

        def judge(reference: Reference, term: Term) -> Parts:
            self._note(reference, term, unit=True)
            return term.parts

        found = self._open(config.text, self.scope.fill(config.text, judge, text=True), path)
        return self._content(found.encode()) if isinstance(found, str) else found

    def _open(self, tree: Tree, filled: Tree, path: str) -> Tree | Gap | Contract | None:
        """A value on the env or config plane: a value, a gap, a contract, or nothing."""
        if not terms.is_text(filled):
            return filled
        if any(isinstance(part, Lost) for part in filled):
            return None
        holes = [part for part in filled if isinstance(part, Hole)]
        if holes:
            self.faults.append(derive_rows.hole(holes[0], path))
            return Gap(hole=holes[0], template=None if len(filled) == 1 else filled)
        if any(isinstance(part, Live) for part in filled):
            alone = terms.is_text(tree) and len(tree) == 1
            return contracts.contract(self.draft, self.assignment, filled, self.faults, alone=alone)
        return filled

    def _live(self, name: str, tree: Tree, path: str) -> Tree:
        if is_table(tree):
            return {key: self._live(key, item, f"{path}.{key}") for key, item in tree.items()}
        filled = self._closed(tree, path, unit=True, text=name != "retries", keyed=False)
        return shapes.period(filled) if name in _PERIODS else filled

    def _resource(self, name: str, tree: Mapping[str, Tree]) -> Tree:
        path = f"resources.{name}"
        fields = {
            key: self._closed(item, f"{path}.{key}", text=key == "text")
            for key, item in tree.items()
        }
        if isinstance(fields.get("file"), str):
            content = self.draft.file(self.assignment.module.name, fields["file"])
            if content is not None:
                fields["digest"] = self._content(content)
        elif isinstance(fields.get("text"), str):
            fields["digest"] = self._content(fields["text"].encode())
        archive = fields.get("archive")
        if fields["type"] == "archive" and isinstance(archive, str):
            self._artifact(archive)
        return shapes.sorted_lists(fields)

    def _requirement(self, index: int, tree: Mapping[str, Tree]) -> Mapping[str, Tree]:
        path = f"requirements[{index}]"

        def judge(reference: Reference, term: Term) -> Parts:
            self._note(reference, term, unit=False)
            if term.lifecycle is not Lifecycle.DYNAMIC:
                return term.parts
            self.faults.append(derive_rows.dynamic_requirement(reference, path))
            return (Lost(str(reference)),)

        return {
            key: shapes.as_written(
                self.scope.fill(item, judge, text=key in {"subject", "pattern", "bounds"})
            )
            for key, item in tree.items()
        }

    def _published(self, publish: Mapping[str, Tree]) -> Tree:
        """`publish.LISTEN = CONTAINERPORT` as `HOST:CONTAINER`; a long form is left as it is."""
        listens = self.assignment.role.listens
        found: dict[str, Tree] = {}
        for name, port in publish.items():
            own = Own(OwnKind.PORT, name, self.assignment.id)
            if (isinstance(port, str) and ":" in port) or name not in listens:
                found[name] = port
            elif own not in self.family.states:
                udp = "/udp" if listens[name].protocol == "udp" else ""
                found[name] = (own, f":{canonical.text(port)}{udp}")
        return found

    def _unit_artifacts(self, unit: CompiledUnit, fields: Mapping[str, Tree]) -> tuple[str, ...]:
        found: list[str] = []
        for field in _ARTIFACTS:
            path = f"units.{unit.name}.{field}"
            name = fields.get(field)
            if not isinstance(name, str):
                continue
            known = names.artifacts(self.assignment, field)
            if name in known:
                found.append(name)
                self._artifact(name)
            elif terms.is_text(unit.fields[field]) and path not in self.lost:
                self.faults.append(
                    Fault(
                        code="unknown-reference",
                        path=path,
                        message=f"{path} of {ENTRY} comes out as `{name}`, which is no artifact",
                        resolution=did_you_mean(name, known, "artifacts of [build]"),
                    )
                )
        return tuple(found)

    def _artifact(self, name: str) -> None:
        digest = self.draft.request.documents.artifacts.get((self.assignment.module.name, name))
        if digest is not None:
            self.artifacts[name] = digest

    def _content(self, content: bytes) -> str:
        digest = canonical.digest(content)
        self.draft.notes.contents[digest] = content
        return digest

    def _secret_reactions(self, unit: CompiledUnit) -> dict[str, Json]:
        role = self.assignment.role
        trees = (unit.fields, unit.env, {at: one.text for at, one in unit.configs.items()})
        found: dict[str, Json] = {}
        for tree in (*trees, unit.live):
            for reference in terms.references_in(dict(tree)):
                name = reference.path[0] if reference.path else ""
                if reference.root == "secrets" and name in role.secrets:
                    said = role.reactions.get(f"secrets.{name}")
                    kind = None if said is None else said.reaction
                    found[name] = "restart" if kind is None else kind.value
        return dict(sorted(found.items()))

    def _reads(self) -> tuple[tuple[Offer, str], ...]:
        """A body that was made for a set of members reads what the role by itself does not."""
        made: dict[str, set[str]] = {}
        if self.body is not self.assignment.body:
            for _, tree in places(self.assignment.compiled, self.body):
                for name, export in slots_read(tree):
                    made.setdefault(name, set()).add(export)
        found: dict[tuple[Offer, str], None] = {}
        for slot, binding in zip(self.assignment.slots, self.family.bindings, strict=True):
            for target in () if binding is None else binding.targets:
                reads = slot.reads | made.get(slot.name, set())
                for name in sorted(reads & target.offer.exports.keys()):
                    found[target.offer, name] = None
        return tuple(found)

    def _note(self, reference: Reference, term: Term, *, unit: bool) -> None:
        """Remember what is read, for the reactions."""
        if reference.root == "secrets" and reference.path and unit:
            self.unit_paths.add(f"secrets.{reference.path[0]}")
        if reference.root != "results" or len(reference.path) < 2:
            return
        path = f"{reference.path[0]}.{reference.path[-1]}"
        if term.lifecycle is Lifecycle.DYNAMIC:
            self.dynamic_paths.add(path)
        if unit:
            self.unit_paths.add(path)

    def _depend(self, reference: Reference, term: Term, *, unit: bool) -> None:
        """Take note of the providers whose keys count, unless only the values are followed."""
        slot = self.assignment.slot(reference.path[0]) if reference.path else None
        for target in term.targets:
            offer = target.offer
            if offer.assignment is None or slot is None:
                continue
            if (slot.follow or offer.follow or Follow.KEY) is Follow.VALUES:
                continue
            self.targets[target] = None
            if unit:
                self.unit_targets[target] = None
