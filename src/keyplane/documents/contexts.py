"""What an `impl` function is given: every name reads as its reference.

A context is built under a spelling. Under the plain one a reference reads `${results.db.dsn}`;
under the other it is a token of another length and another order, so that a function which
compares references or looks into them gives another result, and is found out.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from keyplane.documents.evaluation import EvaluationRequest
from keyplane.documents.trees import is_list, is_table
from keyplane.model.interface import Interface
from keyplane.model.module import Json, Reach, Role

_TOKEN = re.compile(r"\$\{([0-9]{6})~x+\}")
_FACT = re.compile(r"\$\{f([^~}]*)~x+\}")
_TOKENS_MAX = 999_999


class Spelling(Protocol):
    """How references are written."""

    def of(self, text: str) -> str:
        """The reference `${text}`."""
        ...

    def facts(self) -> tuple[str, str]:
        """What stands before and after the name of a fact."""
        ...


class Plain:
    """As the contract writes them."""

    def of(self, text: str) -> str:
        return "${" + text + "}"

    def facts(self) -> tuple[str, str]:
        return "${machine.facts.", "}"


class Other:
    """Tokens: longer than the plain spelling, and sorted the other way round."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = sorted(set(texts), reverse=True)
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def of(self, text: str) -> str:
        return f"${{{self._numbers[text]:06}~{'x' * (len(text) + 1)}}}"

    def facts(self) -> tuple[str, str]:
        return "${f", "~xxxxxxxxxxxxxxxx}"

    def plain(self, tree: Json) -> Json:
        """The tree with each token replaced by the plain spelling."""
        if isinstance(tree, str):
            found = _TOKEN.sub(self._plain_token, tree)
            return _FACT.sub(r"${machine.facts.\1}", found)
        if is_table(tree):
            return {self.plain(key): self.plain(value) for key, value in tree.items()}
        if is_list(tree):
            return [self.plain(item) for item in tree]
        return tree

    def _plain_token(self, match: re.Match[str]) -> str:
        number = int(match[1])
        return "${" + self._texts[number] + "}" if number < len(self._texts) else match[0]


class _Gathering(Plain):
    """Notes each reference that a context has."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def of(self, text: str) -> str:
        self.texts.append(text)
        return super().of(text)


def other(request: EvaluationRequest) -> Other:
    """The other spelling of all references in this request's context."""
    gathering = _Gathering()
    context(request, gathering)
    assert len(gathering.texts) <= _TOKENS_MAX
    return Other(gathering.texts)


def context(request: EvaluationRequest, spelling: Spelling) -> Json:
    """The tree from which the evaluator makes `ctx`."""
    role = request.module.roles[request.role]

    def names(prefix: str, known: Iterable[str]) -> Json:
        return _struct({name: _value(spelling.of(f"{prefix}.{name}")) for name in known})

    before, after = spelling.facts()
    machine = {name: _value(spelling.of(f"machine.{name}")) for name in ("name", "address")}
    consumer = {
        name: _value(spelling.of(f"consumer.{name}"))
        for name in ("instance", "role", "machine", "login")
    }
    return _struct(
        {
            "settings": _struct({name: _value(value) for name, value in request.settings.items()}),
            "results": _struct(
                {slot: _results(request, slot, spelling) for slot in role.uses},
            ),
            "alloc": _struct({"ports": names("alloc.ports", role.listens)}),
            "machine": _struct({**machine, "facts": {"facts": [before, after]}}),
            "secrets": names("secrets", role.secrets),
            "state": names("state", role.state),
            "credentials": names("credentials", role.uses),
            "bound": _struct({slot: names(f"bound.{slot}", ("address",)) for slot in role.uses}),
            "self": names("self", ("instance", "role", "entry")),
            "consumer": _struct(
                {**consumer, "request": names("consumer.request", _asked(role, request.interfaces))}
            ),
        }
    )


def _results(request: EvaluationRequest, slot: str, spelling: Spelling) -> Json:
    wanted = request.module.roles[request.role].uses[slot]
    interface = request.interfaces.get(wanted.interface)
    exports = () if interface is None else tuple(interface.exports)

    def exported(prefix: str) -> Json:
        return _struct({name: _value(spelling.of(f"{prefix}.{name}")) for name in exports})

    if wanted.reach is not Reach.ALL:
        return exported(f"results.{slot}")
    members = sorted(request.members.get(slot, ()))
    return {"dict": {machine: exported(f"results.{slot}.{machine}") for machine in members}}


def _asked(role: Role, interfaces: Mapping[str, Interface]) -> list[str]:
    """The names of the requests that this role's consumers make."""
    return sorted(
        {
            name
            for provide in role.provides.values()
            if provide.interface in interfaces
            for name in interfaces[provide.interface].request
        }
    )


def _struct(fields: Mapping[str, Json]) -> Json:
    return {"struct": dict(fields)}


def _value(value: Json) -> Json:
    return {"value": value}
