"""The faults of planes: what was refused where, and the ways out; and holes."""

from keyplane.documents.references import Reference
from keyplane.model.diagnostic import Severity
from keyplane.model.module import Lifecycle
from keyplane.planner.rows import ENTRY, Fault
from keyplane.planner.terms import Hole


def refused(reference: Reference, lifecycle: Lifecycle, path: str) -> Fault:
    name = ".".join(reference.path) if reference.root == "results" else reference.text
    probed = lifecycle is Lifecycle.PROBED
    ways = (
        ("put the value in env or configData, where a fact may still be missing",)
        if probed
        else (
            "put the value in env or configData, where it is a dynamic value",
            'or have the provider publish it as a fact (lifecycle = "probed")',
        )
    )
    return Fault(
        code="probed-in-closure" if probed else "dynamic-in-closure",
        path=path,
        message=f"{name} ({lifecycle.value}) is interpolated into the closure of {ENTRY} ({path})",
        resolution=ways,
    )


def dynamic_requirement(reference: Reference, path: str) -> Fault:
    return Fault(
        code="dynamic-in-requirements",
        path=path,
        message=f"{'.'.join(reference.path)} (dynamic) appears in {path} of {ENTRY}",
        resolution=("placement cannot wait for a running service: use a probed fact",),
    )


def hole(hole: Hole, path: str) -> Fault:
    where = "its own machine" if hole.machine is None else f"machine {hole.machine}"
    return Fault(
        code="hole",
        path=path,
        message=f"{path} of {ENTRY} waits for fact {hole.fact} of {where}, which has no value",
        resolution=(f"it is filled once an agent publishes {hole.fact}",),
        severity=Severity.INFO,
        alone=True,
    )
