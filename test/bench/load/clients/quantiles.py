"""The quantiles that the clients report: linear between neighbours, as in src/core/statistics.ts."""


def quantile(values, q):
    ordered = sorted(values)
    at = (len(ordered) - 1) * q
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def quantiles(values):
    return {"p50": quantile(values, 0.5), "p99": quantile(values, 0.99)} if values else None
