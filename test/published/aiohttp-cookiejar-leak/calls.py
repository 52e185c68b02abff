"""What a client asks its cookie jar before each request: which cookies go to this address."""

import itertools

from aiohttp import CookieJar
from yarl import URL

numbers = itertools.count()


async def jar():
    jar = CookieJar(unsafe=True)
    jar.update_cookies({"sid": "1"}, URL("http://127.0.0.1/"))
    return jar


async def ask(jar):
    return len(jar.filter_cookies(URL(f"http://127.0.0.1/v1/items/{next(numbers)}/detail")))
