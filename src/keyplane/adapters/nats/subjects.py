"""Names of subjects. Whose a message is, is read from its subject and never from its payload."""

from keyplane.model import names
from keyplane.model.names import MachineName

ALL_ASKS = "kp.ask.*"
ALL_REPORTS = "kp.report.*"
ALL_FACTS = "kp.facts.*"
ALL_BEATS = "kp.beat.*"
ALL_HINTS = "kp.hint.*"
BUCKET = "KV_DYN"
"""The stream of dynamic values: a key-value bucket named DYN."""
ALL_VALUES = "$KV.DYN.>"
CREATE_BUCKET = f"$JS.API.STREAM.CREATE.{BUCKET}"
UPDATE_BUCKET = f"$JS.API.STREAM.UPDATE.{BUCKET}"
CONTROLLER_INBOX = "_INBOX.CONTROLLER"
"""In capitals, which no machine's name has."""


def ask(machine: MachineName) -> str:
    return f"kp.ask.{machine}"


def report(machine: MachineName) -> str:
    return f"kp.report.{machine}"


def facts(machine: MachineName) -> str:
    return f"kp.facts.{machine}"


def beat(machine: MachineName) -> str:
    return f"kp.beat.{machine}"


def hint(machine: MachineName) -> str:
    return f"kp.hint.{machine}"


def inbox(machine: MachineName) -> str:
    """What all reply subjects of that machine begin with, the next dot not among it."""
    return f"_INBOX.{machine}"


def value(export: str) -> str | None:
    """Where an export is said; None for one of outside the fleet, which nobody says here.

    Its machine comes first, so that whose it is can be read from the subject.
    """
    entry, _, rest = export.partition("/provides/")
    holder, _, machine = entry.rpartition("@")
    instance, _, role = holder.partition(":")
    provide, _, name = rest.partition("/")
    tokens = (machine, instance, role, provide, name)
    if not all(names.is_name(token) for token in tokens):
        return None
    return ".".join(("$KV.DYN", *tokens))


def stored_value(export: str) -> str | None:
    """Where the last word of an export is asked for, without a consumer."""
    subject = value(export)
    return None if subject is None else f"$JS.API.DIRECT.GET.{BUCKET}.{subject}"


def machine_of(subject: str) -> MachineName | None:
    """The machine of an ask, report, beat or of facts; None if the subject names none."""
    last = subject.rpartition(".")[2]
    return MachineName(last) if names.is_name(last) else None


def is_answerable(reply: str, machine: MachineName) -> bool:
    """Whether `reply` lies under the machine's own inbox.

    The server lets a client name any reply subject; an answer elsewhere would let a machine have
    the controller write, in the controller's name, to what the machine may not write to itself.
    """
    prefix = f"{inbox(machine)}."
    tokens = reply.removeprefix(prefix).split(".")
    return reply.startswith(prefix) and not any(token in {"", "*", ">"} for token in tokens)
