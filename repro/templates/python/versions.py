"""Says as JSON what Python this is and which packages a module loads, and whether it takes so many arguments.

Run: python3 -c "$(cat versions.py)" module:callable path [counts]
"""

import importlib
import inspect
import json
import platform
import sys
from importlib import metadata


def distributions(before):
    """Packages that have loaded a module since, with their versions."""
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    found = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name is None:
            continue
        tops = (one.read_text("top_level.txt") or name.replace("-", "_")).split()
        if loaded.intersection([*tops, name.lower().replace("-", "_")]):
            found[name] = one.version
    return found


def refusal(function, count):
    """Why a function cannot be called with so many arguments; None when it can, or nobody knows."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        return f"{error}, with {count} given"
    return None


def main():
    # Start-up files of an environment load some that the target does not.
    before = set(sys.modules)
    target, path = sys.argv[1:3]
    counts = json.loads(sys.argv[3]) if len(sys.argv) > 3 else []
    answer = {"version": platform.python_version(), "packages": {}, "problem": None}
    sys.path.insert(0, path)
    if target:
        module, _, name = target.partition(":")
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            if not callable(found):
                answer["problem"] = f"{target} is a {type(found).__name__} and cannot be called"
            else:
                refused = [refusal(found, count) for count in counts]
                if refused and all(refused):
                    answer["problem"] = refused[0]
        except BaseException as error:
            answer["problem"] = f"{type(error).__name__}: {error}"
    answer["packages"] = distributions(before)
    print("\n" + json.dumps(answer))


main()
