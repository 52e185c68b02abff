"""The cookies of a request, some of them quoted and full of escapes."""

from tornado.httputil import parse_cookie


async def parse(escapes):
    return len(parse_cookie('a="' + '\\"' * escapes + '"')["a"])
