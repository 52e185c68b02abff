"""FastAPI on uvicorn, as deployed: ``--loop asyncio`` or ``--loop uvloop``."""

import asyncio
import contextlib
import socket
import sys

import fastapi
import uvicorn

import plan

truth = plan.Truth(plan.parse(sys.argv[1:], loop={"choices": ["asyncio", "uvloop"], "default": "asyncio"}))
listener = socket.create_server(("127.0.0.1", 0))


@contextlib.asynccontextmanager
async def lifespan(app):
    running = asyncio.ensure_future(plan.run(truth, listener.getsockname()[1]))
    running.add_done_callback(stop)
    yield
    running.cancel()


app = fastapi.FastAPI(lifespan=lifespan)
server = uvicorn.Server(uvicorn.Config(app, loop=truth.arguments.loop, lifespan="on", log_level="warning", timeout_graceful_shutdown=1))


def stop(_):
    server.should_exit = True


@app.get("/")
async def handle_root():
    return {"ok": True}


async def serve_work(kind, ms):
    await truth.work(kind, ms)
    return {"kind": kind, "ms": ms}


@app.get("/work")
async def handle_work(kind: str, ms: int):
    return await serve_work(kind, ms)


if __name__ == "__main__":
    server.run(sockets=[listener])
