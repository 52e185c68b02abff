"""Django on uvicorn: sessions in a cache, a page that is cached, asynchronous views."""

import asyncio
import sys

import common


async def main():
    import django
    import uvicorn
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.core.cache import cache
    from django.http import JsonResponse
    from django.urls import path

    async def page(request, number):
        request.session["seen"] = request.session.get("seen", 0) + 1
        text = await cache.aget(f"page {number}")
        if text is None:
            await asyncio.sleep(0.002)
            text = "x" * 500
            await cache.aset(f"page {number}", text, 60)
        return JsonResponse({"number": number, "text": text, "seen": request.session["seen"]})

    settings.configure(
        SECRET_KEY="not a secret",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
        SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 500}}},
    )
    django.setup()
    globals()["urlpatterns"] = [path("pages/<int:number>", page)]
    server = uvicorn.Server(uvicorn.Config(get_asgi_application(), port=0, log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    await common.run(__file__, server.servers[0].sockets[0].getsockname()[1])
    serving.cancel()


if sys.argv[1] == "load":
    asyncio.run(common.http_load(["/pages/{}", "/pages/1"]))
else:
    asyncio.run(main())
