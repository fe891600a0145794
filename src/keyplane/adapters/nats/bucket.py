"""The bucket of dynamic values, made and kept by the controller."""

import json
from typing import Any

from nats.aio.msg import Msg

from keyplane.adapters.nats import subjects
from keyplane.adapters.nats.link import Link
from keyplane.adapters.nats.values import VALUE_BYTES_MAX
from keyplane.ports.bus import BusUnavailableError

TIMEOUT_MS = 5_000
_OTHER_CONFIGURATION = 10058

CONFIGURATION: dict[str, Any] = {
    "name": subjects.BUCKET,
    "subjects": [subjects.ALL_VALUES],
    "retention": "limits",
    "storage": "file",
    "discard": "new",
    "max_msgs_per_subject": 1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 0,
    "max_consumers": -1,
    # With the envelope around it.
    "max_msg_size": VALUE_BYTES_MAX + 4 * 1024,
    "num_replicas": 1,
    "allow_direct": True,
    # Whoever may say one export could else have all others forgotten by a header.
    "allow_rollup_hdrs": False,
    "deny_delete": True,
    "deny_purge": True,
}


async def ensure(link: Link) -> None:
    """Make it where it is not there; what it holds stays."""
    payload = json.dumps(CONFIGURATION).encode()
    answer = await link.request(subjects.CREATE_BUCKET, payload, timeout_ms=TIMEOUT_MS)
    error = _error(answer)
    if error is not None and error.get("err_code") == _OTHER_CONFIGURATION:
        answer = await link.request(subjects.UPDATE_BUCKET, payload, timeout_ms=TIMEOUT_MS)
        error = _error(answer)
    if error is not None:
        raise BusUnavailableError(f"the bus keeps no values: {error.get('description')}")


def _error(answer: Msg) -> dict[str, Any] | None:
    try:
        return json.loads(answer.data).get("error")
    except (ValueError, AttributeError):
        return {"description": "its answer cannot be read"}
