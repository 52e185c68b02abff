"""A server with one route, asked with a method that the route does not take."""

from aiohttp import web
from aiohttp.test_utils import make_mocked_request


@web.middleware
async def passing(request, handler):
    return await handler(request)


async def item(request):
    return web.Response(text="ok")


async def serve():
    app = web.Application(middlewares=[passing])
    app.router.add_get("/item", item)
    app.freeze()
    return app


async def post(app):
    try:
        await app._handle(make_mocked_request("POST", "/item", app=app))
    except web.HTTPMethodNotAllowed:
        return 405
