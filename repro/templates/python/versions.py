"""Says as JSON what Python this is and which packages a module loads: python3 -c "$(cat versions.py)" module:callable path"""

import importlib
import json
import platform
import sys
from importlib import metadata


def distributions():
    """Packages that have loaded a module, with their versions."""
    loaded = {name.partition(".")[0] for name in sys.modules}
    found = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name is None:
            continue
        tops = (one.read_text("top_level.txt") or name.replace("-", "_")).split()
        if loaded.intersection([*tops, name.lower().replace("-", "_")]):
            found[name] = one.version
    return found


def main():
    target, path = sys.argv[1:3]
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
        except BaseException as error:
            answer["problem"] = f"{type(error).__name__}: {error}"
    answer["packages"] = distributions()
    print("\n" + json.dumps(answer))


main()
