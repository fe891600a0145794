"""One dynamic value: what it should be by what is known, and since when it is not.

Knows no windows, no breakers and no actions.
"""

from collections.abc import Mapping

from keyplane.converge.frozen import replace
from keyplane.converge.reaction_state import Known, News, Value
from keyplane.model.module import OnMissing
from keyplane.model.reaction import Contract

UNKNOWN = Known(value=None)
"""What is known of an export of which nothing was ever said."""


def heard(old: Known, news: News) -> Known:
    """What is known of an export after one more word of it."""
    return Known(
        value=old.value if news.value is None else news.value,
        missing=news.value is None,
        number=news.number,
        silent_since_ms=old.silent_since_ms if news.stored else None,
    )


def observed(value: Value, exports: Mapping[str, Known], now_ms: int) -> Value:
    """The value by what is known now."""
    contract = value.contract
    known = [exports.get(source) for source in contract.sources]
    missing = any(one is not None and one.missing for one in known)
    wants = _wanted(contract, known, missing=missing)
    missing_since = _since(value.missing_since_ms, now_ms) if missing else None
    heard = replace(value, wants=wants, missing_since_ms=missing_since)
    kept = _keeps(heard) or (value.kept and heard.is_pending)
    wrong = heard.is_pending or kept or heard.is_barred
    wrong_since = _since(value.wrong_since_ms, now_ms) if wrong else None
    return replace(heard, kept=kept, wrong_since_ms=wrong_since)


def taken(value: Value) -> Value:
    """The value once the unit runs with what it should."""
    kept = _keeps(value)
    return replace(
        value,
        runs=value.runs if value.wants is None else value.wants,
        kept=kept,
        wrong_since_ms=value.missing_since_ms if kept else None,
    )


def dropped(value: Value) -> Value:
    """The value once its unit was stopped."""
    return replace(value, runs=None)


def _keeps(value: Value) -> bool:
    return value.missing_since_ms is not None and value.contract.on_missing is OnMissing.KEEP_LAST


def _since(before_ms: int | None, now_ms: int) -> int:
    return now_ms if before_ms is None else before_ms


def _wanted(contract: Contract, known: list[Known | None], *, missing: bool) -> str | None:
    if missing and contract.on_missing is OnMissing.STOP:
        return None
    if missing and contract.on_missing is OnMissing.DEFAULT:
        return contract.default
    texts = [None if one is None else one.value for one in known]
    shown: list[str] = []
    for part in contract.parts:
        text = texts[part] if isinstance(part, int) else part
        if text is None:
            return None
        shown.append(text)
    return "".join(shown)
