"""What a web framework does with headers: defaults, then those of the request."""

from multidict import CIMultiDict, MultiDict

DEFAULTS = CIMultiDict(server="demo")


def merge(number):
    merged = MultiDict()
    merged.extend(DEFAULTS)
    merged.extend(CIMultiDict({"host": "x", "x-id": str(number)}))
    return len(merged)
