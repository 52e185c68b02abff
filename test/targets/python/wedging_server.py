"""An inference server of several processes with vLLM's names and page, which can be wedged for real.

The API server publishes what the engine core tells it; the engine core makes a step by asking every worker and waiting for all answers; a worker
computes for a moment and answers. A step makes two tokens. What goes wrong is planned by flags, and begins when the file --when is there:

    --fault deadlock     the last worker waits for a lock that its own thread holds
    --fault lost         the engine core waits for a message that nobody sends
    --fault spin         the engine core polls, without sleeping, for a message that nobody sends
    --fault prefill      one step in which the engine core computes for --prefill-s, then it goes on
    --fault slow         a step takes --step-s from then on
    --fault none         nothing: the healthy twin

With --idle nothing runs until something is asked: the engine core makes one step for each request to /v1/chat/completions, and the page, which
learns of a request by its step, has none running.

Prints `READY <pid> <port>` and `PIDS <engine core> <worker>…`.
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import threading
import time

RUNNING = 2
ANSWER = b'data: {"id":"1","object":"chat.completion.chunk","model":"tiny","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n'
PAGE = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="tiny"}} {running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{{engine="0",model_name="tiny"}} 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{{engine="0",model_name="tiny"}} 0.25
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0",model_name="tiny"}} 512
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{{engine="0",model_name="tiny"}} {tokens}
# TYPE vllm:request_success_total counter
vllm:request_success_total{{engine="0",model_name="tiny",finished_reason="stop"}} 3
"""


def start(title, arguments, descriptors, **pipes):
    """A process of this program under another name, in which the interpreter does not find its own library."""
    environment = {**os.environ, "PYTHONHOME": sys.base_prefix}
    command = [title, os.path.abspath(__file__), *map(str, arguments)]
    program = os.readlink("/proc/self/exe")
    return subprocess.Popen(command, executable=program, env=environment, pass_fds=descriptors, **pipes)


def end_with_parent(parent):
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


def is_due(when):
    return when != "" and os.path.exists(when)


def wait_for_ever(reader):
    os.read(reader, 1)


def poll_for_ever(flag):
    while not flag:
        pass


def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


# -- the worker --------------------------------------------------------------------------------------------------------


def answer(requests, answers, deadlock_when):
    lock = threading.Lock()
    lock.acquire()
    while True:
        if not os.read(requests, 1):
            return
        if is_due(deadlock_when):
            save_cache(lock)
        time.sleep(0.002)
        os.write(answers, b"a")


def save_cache(lock):
    with lock:
        pass


# -- the engine core ---------------------------------------------------------------------------------------------------


def run_engine(arguments, workers, channel):
    nobody, _ = os.pipe()
    while True:
        if arguments.idle:
            channel.recv(1)
        due = is_due(arguments.when)
        if due and arguments.fault == "lost":
            wait_for_ever(nobody)
        if due and arguments.fault == "spin":
            poll_for_ever([])
        if due and arguments.fault == "prefill":
            compute(arguments.prefill_s)
            arguments.fault = "none"
        step(workers)
        channel.send(b"s")
        time.sleep(arguments.step_s if due and arguments.fault == "slow" else 0.05)


def step(workers):
    for requests, _ in workers:
        os.write(requests, b"r")
    for _, answers in workers:
        receive(answers)


def receive(answers):
    if not os.read(answers, 1):
        os._exit(0)


def start_workers(arguments):
    workers = []
    for rank in range(arguments.workers):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        last = rank == arguments.workers - 1
        fault = arguments.fault if last else "none"
        flags = ["worker", theirs_in, theirs_out, "--fault", fault, "--when", arguments.when]
        child = start("VLLM::Worker_TP%d" % rank, flags, [theirs_in, theirs_out])
        os.close(theirs_in)
        os.close(theirs_out)
        workers.append((ours_out, ours_in, child.pid))
    return workers


# -- the API server ----------------------------------------------------------------------------------------------------


async def serve(arguments):
    ours, theirs = socket.socketpair()
    flags = ["engine", theirs.fileno(), "--fault", arguments.fault, "--when", arguments.when]
    flags += ["--prefill-s", arguments.prefill_s, "--step-s", arguments.step_s, "--workers", arguments.workers]
    flags += ["--idle"] if arguments.idle else []
    engine = start("VLLM::EngineCore", flags, [theirs.fileno()], stdout=subprocess.PIPE)
    theirs.close()
    ours.setblocking(False)
    loop = asyncio.get_running_loop()
    stepped = asyncio.Condition()
    steps = 0

    async def count():
        nonlocal steps
        while True:
            made = len(await loop.sock_recv(ours, 4096))
            async with stepped:
                steps += made
                stepped.notify_all()

    async def complete():
        before = steps
        await loop.sock_sendall(ours, b"q")
        async with stepped:
            await stepped.wait_for(lambda: steps > before)
        return b"".join(ANSWER % token for token in (b"one", b" two")) + b"data: [DONE]\n\n"

    async def handle(reader, writer):
        path = (await reader.readline()).split(b" ")[1]
        while (await reader.readline()).strip():
            pass
        kind = "text/plain; version=0.0.4"
        if path == b"/metrics":
            body = PAGE.format(running=0 if arguments.idle else RUNNING, tokens=2 * steps).encode()
        elif path == b"/v1/models":
            kind, body = "application/json", b'{"object":"list","data":[{"id":"tiny","object":"model"}]}'
        elif path == b"/v1/chat/completions":
            kind, body = "text/event-stream", await complete()
        else:
            body = b"ok"
        head = "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        writer.write((head % (kind, len(body))).encode() + body)
        await writer.drain()
        writer.close()

    counting = asyncio.ensure_future(count())
    server = await asyncio.start_server(handle, "127.0.0.1", arguments.port)
    port = server.sockets[0].getsockname()[1]
    pids = engine.stdout.readline().decode().strip()
    print("PIDS", pids, flush=True)
    print("READY", os.getpid(), port, flush=True)
    await asyncio.sleep(arguments.seconds)
    counting.cancel()
    engine.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", nargs="?", default="serve")
    parser.add_argument("descriptors", nargs="*", type=int)
    parser.add_argument("--fault", default="none")
    parser.add_argument("--when", default="")
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--prefill-s", type=float, default=60)
    parser.add_argument("--step-s", type=float, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    if arguments.part == "serve":
        asyncio.run(serve(arguments))
        return
    threading.Thread(target=end_with_parent, args=(os.getppid(),), daemon=True).start()
    if arguments.part == "worker":
        requests, answers = arguments.descriptors
        answer(requests, answers, arguments.when if arguments.fault == "deadlock" else "")
        return
    (channel,) = arguments.descriptors
    workers = start_workers(arguments)
    print(os.getpid(), *[pid for _, _, pid in workers], flush=True)
    api = socket.socket(fileno=channel)
    run_engine(arguments, [(requests, answers) for requests, answers, _ in workers], api)


main()
