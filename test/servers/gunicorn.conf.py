"""gunicorn's configuration for the tests: says READY with the master's pid and port, and WORKER with the pid of each worker that serves."""

import os

bind = "127.0.0.1:0"
worker_class = "uvicorn_worker.UvicornWorker"
loglevel = "warning"


def when_ready(server):
    print("READY", os.getpid(), server.LISTENERS[0].getsockname()[1], flush=True)


def post_worker_init(worker):
    print("WORKER", os.getpid(), flush=True)
