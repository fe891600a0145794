"""What runs the functions that Starlark documents hold.

An evaluator is deterministic: equal calls have equal answers, whatever ran before. It shows a
function nothing but the call: no clock, file, network or environment.
"""

from typing import Protocol

from keyplane.documents.evaluation import Call, Fault, Value


class Evaluator(Protocol):
    """Never raises for what a document does; trouble of any kind is a `Fault`."""

    def run(self, call: Call) -> Value | Fault: ...

    def close(self) -> None:
        """Let go of what runs them. A later call starts it again."""
        ...
