"""
What the code around an await reads before it and writes after it: `python places.py` takes a JSON list of lists of [path, line] on stdin, each
innermost first, and answers for each the first place that lies between two accesses to the same thing, or null.
"""

import ast
import json
import sys

# Methods that change what they are called on.
CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
    "put_nowait", "remove", "reverse", "setdefault", "sort", "update",
}  # fmt: skip
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What lies between makes a race, the likelier first.
PAIRS = (("read", "write"), ("write", "read"), ("write", "write"), ("read", "read"))


def dotted(node):
    """`self.balance` for the attribute; None for what is no chain of names."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else base + "." + node.attr
    return None


class Accesses(ast.NodeVisitor):
    """Reads, writes and awaits of one function, in the order in which they happen."""

    def __init__(self, function):
        self.events = []
        self.function = function
        self.local = local_names(function)
        for statement in function.body if isinstance(function.body, list) else [function.body]:
            self.visit(statement)

    def note(self, kind, node):
        name = dotted(node)
        if name is not None and not ("." not in name and name in self.local):
            self.events.append((kind, name, node.lineno))

    def visit_FunctionDef(self, node):
        pass

    visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = visit_FunctionDef

    def visit_Await(self, node):
        self.visit(node.value)
        self.events.append(("await", (node.lineno, node.end_lineno), node.lineno))

    def visit_AsyncFor(self, node):
        self.visit(node.iter)
        self.events.append(("await", (node.lineno, node.iter.end_lineno), node.lineno))
        self.visit(node.target)
        for statement in node.body + node.orelse:
            self.visit(statement)

    def visit_AsyncWith(self, node):
        last = node.items[-1].context_expr.end_lineno
        for item in node.items:
            self.visit(item.context_expr)
        self.events.append(("await", (node.lineno, last), node.lineno))
        for statement in node.body:
            self.visit(statement)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AugAssign(self, node):
        target = node.target.value if isinstance(node.target, ast.Subscript) else node.target
        self.note("read", target)
        self.visit(node.value)
        self.note("write", target)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_Call(self, node):
        for argument in node.args + [keyword.value for keyword in node.keywords]:
            self.visit(argument)
        if isinstance(node.func, ast.Attribute):
            changes = node.func.attr in CHANGING
            if dotted(node.func.value) is None:
                self.visit(node.func.value)
            else:
                self.note("write" if changes else "read", node.func.value)
        elif not isinstance(node.func, ast.Name):
            self.visit(node.func)

    def visit_Subscript(self, node):
        self.visit(node.slice)
        kind = "read" if isinstance(node.ctx, ast.Load) else "write"
        if dotted(node.value) is None:
            self.visit(node.value)
        else:
            self.note(kind, node.value)

    def visit_Attribute(self, node):
        if dotted(node) is None:
            self.visit(node.value)
        else:
            self.note("read" if isinstance(node.ctx, ast.Load) else "write", node)

    def visit_Name(self, node):
        self.note("read" if isinstance(node.ctx, ast.Load) else "write", node)


def local_names(function):
    arguments = function.args
    every = arguments.args + arguments.kwonlyargs + getattr(arguments, "posonlyargs", [])
    names = {one.arg for one in every + [one for one in (arguments.vararg, arguments.kwarg) if one]}
    shared = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            shared.update(node.names)
    return names - shared


def between(path, line):
    """The nearest two accesses to one thing around the await at a line: (line, name, kind, line, kind, line); None when there are none."""
    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= node.end_lineno
    ]
    if not around:
        return None
    events = Accesses(max(around, key=lambda node: node.lineno)).events
    at = next(
        (
            index
            for index, (kind, span, _) in enumerate(events)
            if kind == "await" and span[0] <= line <= span[1]
        ),
        None,
    )
    if at is None:
        return None
    for first, second in PAIRS:
        for kind, name, before in reversed(events[:at]):
            if kind != first:
                continue
            for other, same, after in events[at + 1 :]:
                if other == second and same == name:
                    rank = PAIRS.index((first, second))
                    return rank, (events[at][2], name, first, before, second, after)
    return None


def answer(frames):
    found = []
    for path, line in frames:
        try:
            pair = between(path, line)
        except (OSError, SyntaxError, ValueError):
            pair = None
        if pair is not None:
            rank, values = pair
            found.append((rank, len(found), [path, *values]))
    return min(found)[2] if found else None


if __name__ == "__main__":
    json.dump([answer(frames) for frames in json.load(sys.stdin)], sys.stdout)
