"""The coverage-guided fuzzer: `python -m tests.fuzz [SECONDS]`, or `make fuzz`.

It starts from the corpus and keeps what it finds for the time of the run. An input that raises, or
takes too long or too much memory, is written to `tests/fuzz/cases` and stays there as a test.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import atheris

HERE = Path(__file__).parent
TIME_MAX_S = 90
"""For one input of a few kilobytes: ten calls of Starlark that each come to their limit."""
MEMORY_MAX_MIB = 2048

with atheris.instrument_imports(include=["keyplane", "tomllib", "json"]):
    from tests.fuzz import loaders, mutation


def mutate(text: bytes, size_max: int, seed: int) -> bytes:
    """Every second time a change of bytes, else one that parsers let through."""
    found = text if seed % 2 else mutation.mutated(text, seed)
    if found == text or len(found) > size_max:
        return atheris.Mutate(text, size_max)
    return found


def main() -> None:
    seconds = sys.argv[1] if len(sys.argv) > 1 else "60"
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus"
        shutil.copytree(HERE / "corpus", corpus)
        options = [
            f"-max_total_time={seconds}",
            f"-timeout={TIME_MAX_S}",
            f"-rss_limit_mb={MEMORY_MAX_MIB}",
            f"-dict={HERE / 'words.dict'}",
            f"-artifact_prefix={HERE / 'cases'}/",
            "-max_len=16384",
            "-print_final_stats=1",
        ]
        atheris.Setup([sys.argv[0], *options, str(corpus)], loaders.run, custom_mutator=mutate)
        atheris.Fuzz()


main()
