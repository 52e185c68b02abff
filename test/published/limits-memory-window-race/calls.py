"""A rate limit of so many hits an hour: the hits that were let through must be in the window."""

import limits
from limits.aio.storage import MemoryStorage
from limits.aio.strategies import MovingWindowRateLimiter

LIMIT = limits.parse("50/hour")


async def limiter():
    return MovingWindowRateLimiter(MemoryStorage())


async def hit(limiter, user):
    return await limiter.hit(LIMIT, user)


async def counted(limiter):
    """How many hits of the user the window holds."""
    stats = await limiter.get_window_stats(LIMIT, "ann")
    return 50 - stats.remaining
