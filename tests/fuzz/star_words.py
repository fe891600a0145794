"""Changes of Starlark text that still parse: an expression for another, a statement more."""

import ast
import random

from keyplane.adapters.starlark import source

EXPRESSIONS = (
    "None", "True", "0", "-1", "1 << 62", "1 << 64", "3 << 500000", "0.5", "1e308 * 10", '""', '"x"',
    '"a" * (1 << 33)', "[0] * (1 << 40)", "range(1 << 60)", "[i for i in range(1 << 60)]", "{}", "[]",
    "()", "(1, 2)", "{1: 2}", '{"a": {}}', '{"a": len}', "len", "struct()", "struct(a = 1)",
    'getattr(ctx, "results")', "dir(ctx)", "str(ctx)", "repr(ctx)", "hash(str(ctx))", "ctx", "ctx.results",
    "ctx.settings", "ctx.alloc.ports", "ctx.machine.facts", 'ctx.machine.facts["a.b"]', 'ctx["machine"]["name"]',
    "ctx.machine.name == ctx.machine.address", "ctx.machine.name[2:-1]", "len(ctx.machine.name)",
    'ctx.machine.name < "m"', "sorted(ctx.alloc.ports)", "ctx.self.entry.upper()", "fleet()", "module()",
    "json.encode(ctx)", 'json.decode("[" * 900)', '"%s" % ctx.machine.name', '"{}".format(ctx)',
    '"${" + ctx.machine.name + "}"', '"$${x}"', '"${x"', 'f"{ctx}"', '"\\x00"', '"\\ud83d"', '"č🐎"',
    "lambda x: x", "[x for x in ctx.results]", "fail()", 'fail("a" * 100000)', "print(ctx)",
    "{x: x for x in range(100000)}", "[[]] * 100000", 'map(len, [""])', "partial(len)", "sorted([1, ''])",
    "(lambda f: f(f))(lambda f: f(f))", "1 // 0", "[][0]", "max()", 'int("9" * 100000)', '"a".join(1)',
)  # fmt: skip
STATEMENTS = (
    "x = []; x.append(x)", "x = 3", "pass", "return", "return x", "return None", "x = x * x", "x += x",
    "x = [x, x]", "for i in range(1 << 60): pass", "for i in range(99): x = x + x",
    "for i in range(900): x = [x]", 'x = {"a": x}', "x.clear()", "y = x[0]", "x[0] = x", "load = 1",
    'load("//a.star", "x")', 'load("//../a.star", "x")', 'load("//fleet.star", "fleet")', "a, b = x",
    "def f(n): return f(n)", "if x: pass", "fail(x)", "def f(*args, **kw): return args", "x = 'a'",
)  # fmt: skip


def mutated(text: bytes, chance: random.Random) -> bytes:
    """The text with an odd expression or statement in it; itself where Python cannot read it."""
    written = text.decode(errors="replace")
    tree = source.parsed(written)
    if tree is None:
        return text
    lines = [line.encode() for line in written.split("\n")]
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    expressions = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    if chance.random() < 0.4 and statements:
        at = chance.choice(statements)
        lines.insert(at.lineno - 1, b" " * at.col_offset + chance.choice(STATEMENTS).encode())
    elif expressions:
        at = chance.choice(expressions)
        assert at.end_lineno is not None
        assert at.end_col_offset is not None
        odd = chance.choice(EXPRESSIONS).encode()
        if chance.random() < 0.3:
            odd = _of(lines, chance.choice(expressions))
        first, last = lines[at.lineno - 1], lines[at.end_lineno - 1]
        changed = first[: at.col_offset] + odd + last[at.end_col_offset :]
        lines[at.lineno - 1 : at.end_lineno] = [changed]
    return b"\n".join(lines)


def _of(lines: list[bytes], node: ast.expr) -> bytes:
    """What stands there, on one line."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    if node.lineno == node.end_lineno:
        return lines[node.lineno - 1][node.col_offset : node.end_col_offset]
    return b"x"
