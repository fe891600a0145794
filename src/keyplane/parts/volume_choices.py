"""What is asked of the data of entries that move, in words, and what the answers mean."""

from collections.abc import Iterable, Mapping, Sequence

from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.names import EntryId, split_entry
from keyplane.model.volumes import Backup, Choice
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import RefusedError
from keyplane.parts.volume_messages import BackupRow, Inherited, Question
from keyplane.rollout.volumes import Arrival, Chosen, Entries, volumes_of

ALL = "*"
"""Whose answer is the one for all that are asked."""


def chosen(
    arrivals: Sequence[Arrival], said: Mapping[str, str], backups: Sequence[Backup]
) -> dict[EntryId, Chosen]:
    """The answers to what is asked, by who arrives; RefusedError for one that cannot be had, or is to no question."""
    found: dict[EntryId, Chosen] = {}
    used: set[str] = set()
    for arrival in arrivals:
        key = next((each for each in _names(arrival) if each in said), None)
        if key is None:
            continue
        used.add(key)
        found[arrival.to] = _chosen(arrival, said[key], backups)
    if unknown := sorted(said.keys() - used - {ALL}):
        asked = ", ".join(_role(each) for each in arrivals) or "no entry"
        raise refused(
            "unknown-name",
            f"`--volumes {unknown[0]}={said[unknown[0]]}` is no answer: the data of {asked} is asked "
            "about",
        )
    return found


def _names(arrival: Arrival) -> list[str]:
    instance, role, _ = split_entry(arrival.to)
    source = [] if arrival.source is None else [arrival.source]
    return [arrival.to, *source, f"{instance}:{role}", instance, ALL]


def _chosen(arrival: Arrival, said: str, backups: Sequence[Backup]) -> Chosen:
    word, _, number = said.partition(":")
    if word not in set(Choice) or (number and word != Choice.RESTORE):
        raise refused("unknown-choice", f"`{said}` is none of {', '.join(Choice)}, restore:BACKUP")
    choice, name = Choice(word), _role(arrival)
    if choice is Choice.HAND_OVER and arrival.source is None:
        raise refused(
            "nobody-to-hand-over",
            f"nothing that is declared has the data of {name} and goes: it is restored from a "
            "backup, or starts empty",
        )
    if choice is not Choice.RESTORE:
        return Chosen(choice=choice)
    here = of_role(arrival, backups)
    named = [each for each in here if not number or str(each.number) == number]
    if not named:
        what = f"no backup {number}" if number else "no backup"
        there = ", ".join(str(each.number) for each in here[:5])
        raise refused(
            "no-backup",
            f"there is {what} of {name}"
            + (f": there are {there}" if there else ": `keyplane backup` makes one"),
        )
    return Chosen(choice=choice, backup=named[0])


def of_role(arrival: Arrival, backups: Iterable[Backup]) -> list[Backup]:
    """Backups that it could be restored from, the newest first."""
    role = split_entry(arrival.to)[:2]
    return [each for each in backups if split_entry(each.entry)[:2] == role]


def questions(
    arrivals: Sequence[Arrival], answers: Mapping[EntryId, Chosen], backups: Sequence[Backup]
) -> list[Question]:
    made: list[Question] = []
    for arrival in arrivals:
        answer = answers.get(arrival.to)
        newest = next(iter(of_role(arrival, backups)), None)
        backup = newest if answer is None or answer.backup is None else answer.backup
        made.append(
            Question(
                entry=arrival.to,
                source=arrival.source,
                volumes=dict(arrival.volumes),
                choice=None if answer is None else answer.choice.value,
                backup=None if backup is None else row(backup),
            )
        )
    return made


def inherited(before: Entries, after: Entries, asked: Iterable[Question]) -> list[Inherited]:
    """Data that stays where it is and changes hands, as where an instance gets another name."""
    gone, come = before.keys() - after.keys(), after.keys() - before.keys()
    left = {
        (split_entry(entry)[2], path): entry
        for entry in sorted(gone)
        for path in volumes_of(before[entry]).values()
    }
    found: dict[tuple[EntryId, EntryId], dict[str, str]] = {}
    for entry in sorted(come - {each.entry for each in asked}):
        for name, path in volumes_of(after[entry]).items():
            former = left.get((split_entry(entry)[2], path))
            if former is not None:
                found.setdefault((entry, former), {})[name] = path
    return [
        Inherited(entry=entry, of=former, volumes=volumes)
        for (entry, former), volumes in found.items()
    ]


def row(backup: Backup) -> BackupRow:
    return BackupRow(
        backup=backup.number,
        entry=backup.entry,
        at_ms=backup.at_ms,
        who=backup.who,
        why=backup.why,
        volumes={each.name: each.digest for each in backup.volumes},
        size=backup.size,
    )


def unsaid(asked: Iterable[Question]) -> list[Diagnostic]:
    """A row for each entry of which nobody has said what is to become of its data."""
    return [_unsaid(each) for each in asked if each.choice is None]


def _unsaid(asked: Question) -> Diagnostic:
    instance, role, machine = split_entry(asked.entry)
    name = f"{instance}:{role}"
    held = ", ".join(f"{volume} ({path})" for volume, path in sorted(asked.volumes.items()))
    say = f"`--volumes {name}="
    ways: list[str] = []
    if asked.source is None:
        where = f"what {machine} has of it is an old copy"
    else:
        former = split_entry(asked.source)[2]
        where = f"it goes from {former} to {machine}, where it has none"
        ways.append(
            f"{say}hand-over`: it stops on {former}, and starts on {machine} with all that it has"
        )
    if asked.backup is not None:
        ways.append(f"{say}restore`: it starts with backup {asked.backup.backup}, the newest")
    ways.append(f"{say}start-empty`: what there is stays where it is, and is not used")
    return Diagnostic(
        code="volume-left",
        severity=Severity.WARNING,
        subject=name,
        path=f"volumes.{min(asked.volumes)}",
        message=f"{name} has data in {held}, and {where}: say what is to become of it",
        resolution=tuple(ways),
    )


def refuse_unsaid(asked: Iterable[Question]) -> None:
    """Raise RefusedError if nobody said what is to become of some entry's data."""
    rows = unsaid(asked)
    if rows:
        names = ", ".join(sorted({each.subject for each in rows}))
        raise RefusedError(
            messages.Problem(
                code="volumes-unsaid",
                message=f"nobody said what is to become of the data of {names}: nothing was applied",
                ways=[way for each in rows for way in each.resolution],
            )
        )


def _role(arrival: Arrival) -> str:
    return ":".join(split_entry(arrival.to)[:2])


def refused(code: str, message: str) -> RefusedError:
    return RefusedError(messages.Problem(code=code, message=message))
