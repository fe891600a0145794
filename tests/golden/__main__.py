"""`make golden`: what the fleets give, recorded anew.

With `--print`, as one JSON document on standard output instead, for the tests.
"""

import json
import sys

from tests.golden import cases


def main() -> None:
    found = {name: cases.answers(name) for name in cases.names()}
    if sys.argv[1:] == ["--print"]:
        json.dump(found, sys.stdout)
        return
    for name, answers in found.items():
        if not (cases.FLEETS / name / cases.SAME_AS).exists():
            for path in cases.recorded(name).keys() - answers.keys():
                (cases.FLEETS / path).unlink()
            for path, text in answers.items():
                (cases.FLEETS / path).write_text(text)


main()
