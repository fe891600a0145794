"""Declarations and reports to encode: one of each that fills every field, and generated ones."""

import nacl.signing
from hypothesis import strategies as st

from keyplane.model.declaration import (
    ConfigFile,
    Declaration,
    DeclaredArchive,
    DeclaredDirectory,
    DeclaredEntry,
    DeclaredFile,
    DeclaredUnit,
    EntryReport,
    EntryState,
    Health,
    OfferNumber,
    Reload,
    Report,
    Restart,
    UnitReport,
    UnitState,
)
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.reaction import Contract, DeclaredRates, Publication

KEY = nacl.signing.SigningKey(bytes(range(32)))
ALPHA = MachineName("alpha")


def digest(letter: str) -> Digest:
    return Digest(f"sha256-{letter * 64}")


DECLARATION = Declaration(
    machine=ALPHA,
    offer=OfferNumber(2, 300),
    generation=digest("0"),
    entries={
        EntryId("shop:web@alpha"): DeclaredEntry(
            key=digest("1"),
            module="web",
            version="1.4",
            units={
                UnitName("server"): DeclaredUnit(
                    digest=digest("2"),
                    kind="process",
                    command=("/srv/web", "--port", "20001"),
                    env={"GREETING": "grüß dich", "EMPTY": ""},
                    config={"/etc/web.json": ConfigFile(digest=digest("3"), mode="0400")},
                    archive=digest("4"),
                    user="web",
                    working_directory="/srv",
                    limits={"memory": "1GiB", "files": 4096, "nested": {"a": [1, None, True]}},
                    run_once=True,
                    health=Health(
                        http="http://127.0.0.1:20001/healthz",
                        interval_ms=2_000,
                        timeout_ms=700,
                        retries=5,
                        start_period_ms=9_000,
                    ),
                    reload=Reload(signal="HUP"),
                    restart=Restart.ON_FAILURE,
                    stop_timeout_ms=2_500,
                ),
                UnitName("prepare"): DeclaredUnit(
                    digest=digest("5"),
                    kind="job",
                    health=Health(command=("/bin/true",)),
                    reload=Reload(command=("/bin/reload", "now")),
                ),
            },
            files={
                "/etc/web.d/x": DeclaredFile(
                    digest=digest("6"), mode="0600", owner="web", group="www", adopt=True
                )
            },
            directories={
                "/var/lib/web": DeclaredDirectory(mode="0700", owner="web", group="www", keep=True)
            },
            archives={"/srv/web": DeclaredArchive(digest=digest("7"))},
            listens={"http": 20_001},
        ),
        EntryId("log:ship@alpha"): DeclaredEntry(
            key=digest("8"),
            module="ship",
            version="2",
            units={
                UnitName("ship"): DeclaredUnit(
                    digest=digest("9"), kind="process", health=Health(tcp="127.0.0.1:20002")
                )
            },
        ),
    },
    contents={digest("3"): b'{"a": 1}\n', digest("6"): bytes(range(256))},
)

REPORT = Report(
    machine=ALPHA,
    offer=OfferNumber(2, 300),
    settled=OfferNumber(2, 299),
    sequence=70_000,
    boot="b7",
    entries={
        EntryId("shop:web@alpha"): EntryReport(
            state=EntryState.FAILED,
            key=digest("1"),
            units={
                UnitName("server"): UnitReport(
                    state=UnitState.BACKING_OFF,
                    digest=digest("2"),
                    pid=4_242,
                    start_ticks=987_654_321,
                    restarts=3,
                    reloads=1,
                    last_exit="signal KILL",
                    cause="it ended three times in a minute",
                    log_tail=("grüß dich", "panic: no such file"),
                )
            },
            cause="server ends again and again",
            notes=("runs without its account",),
        )
    },
    refused="unknown field `colour`",
)

_int = st.integers(min_value=0, max_value=2**53)
_text = st.text(max_size=12)
_digest = st.builds(Digest, _text)
_json = st.recursive(
    st.none() | st.booleans() | _int | st.floats(allow_nan=False) | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_offer = st.builds(OfferNumber, _int, _int)
_health = st.builds(
    Health,
    http=...,
    tcp=...,
    command=...,
    interval_ms=_int,
    timeout_ms=_int,
    retries=_int,
    start_period_ms=_int,
)
_contract = st.builds(
    Contract,
    sources=st.lists(_text, max_size=2).map(tuple),
    parts=st.lists(_text | _int, max_size=3).map(tuple),
    reaction=...,
    on_missing=...,
    default=...,
    max_staleness_ms=st.none() | _int,
)
_publication = st.builds(
    Publication,
    type=...,
    file=...,
    command=st.none() | st.lists(_text, max_size=2).map(tuple),
    every_ms=st.none() | _int,
    published=...,
)
_rates = st.builds(
    DeclaredRates, window_ms=_int, burst=_int, restarts_per_unit=_int, budget_ms=_int
)
_unit = st.builds(
    DeclaredUnit,
    digest=_digest,
    kind=_text,
    command=st.lists(_text, max_size=3).map(tuple),
    env=st.dictionaries(_text, _text, max_size=3),
    config=st.dictionaries(_text, st.builds(ConfigFile, mode=...), max_size=2),
    archive=...,
    user=...,
    working_directory=...,
    limits=st.dictionaries(_text, _json, max_size=2),
    run_once=...,
    health=st.none() | _health,
    reload=...,
    restart=...,
    stop_timeout_ms=_int,
    dynamic=st.dictionaries(_text, _contract, max_size=2),
)
_entry = st.builds(
    DeclaredEntry,
    key=_digest,
    module=_text,
    version=_text,
    units=st.dictionaries(st.builds(UnitName, _text), _unit, max_size=2),
    files=st.dictionaries(
        _text, st.builds(DeclaredFile, mode=..., owner=..., group=..., adopt=...), max_size=2
    ),
    directories=st.dictionaries(
        _text, st.builds(DeclaredDirectory, mode=..., owner=..., group=..., keep=...), max_size=2
    ),
    archives=st.dictionaries(_text, st.builds(DeclaredArchive), max_size=2),
    listens=st.dictionaries(_text, _int, max_size=2),
    publishes=st.dictionaries(_text, _publication, max_size=2),
)
declarations = st.builds(
    Declaration,
    machine=st.builds(MachineName, _text),
    offer=_offer,
    generation=_digest,
    entries=st.dictionaries(st.builds(EntryId, _text), _entry, max_size=3),
    contents=st.dictionaries(_digest, st.binary(max_size=20), max_size=3),
    rates=_rates,
    address=...,
)
_unit_report = st.builds(
    UnitReport,
    state=...,
    digest=_digest,
    pid=st.none() | _int,
    start_ticks=st.none() | _int,
    restarts=_int,
    reloads=_int,
    last_exit=...,
    cause=...,
    log_tail=st.lists(_text, max_size=3).map(tuple),
)
reports = st.builds(
    Report,
    machine=st.builds(MachineName, _text),
    offer=_offer,
    settled=_offer,
    sequence=_int,
    boot=_text,
    entries=st.dictionaries(
        st.builds(EntryId, _text),
        st.builds(
            EntryReport,
            state=...,
            key=_digest,
            units=st.dictionaries(st.builds(UnitName, _text), _unit_report, max_size=2),
            cause=...,
            notes=...,
        ),
        max_size=3,
    ),
    refused=...,
)
