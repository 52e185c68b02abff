"""A server of several processes with vLLM's names, each with an asyncio loop of its own; what goes wrong in which is planned by a flag.

    server_tree.py --plan '{"role": "serve", "children": [{"title": "VLLM::EngineCore", "children": […]}]}'

A plan says of a process:
    title       what its command line begins with (it is started under that name)
    children    plans of what it starts at once
    join_s, join      after so many seconds it starts what the plan `join` says
    block_ms, every_ms    its loop stands still this long, this often
    exit_s      it ends after so many seconds,
    signal      by this signal, or
    code        with this exit code
    storm_hz    it forks so many children a second, which end at once
    seconds     all end by themselves then
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time


def start(plan):
    arguments = [plan.get("title", "child"), os.path.abspath(__file__), "--plan", json.dumps(plan)]
    # The standard library reaps them as it polls: like most servers, it takes the exit status at once.
    # Under another name the interpreter does not find its own library.
    environment = {**os.environ, "PYTHONHOME": sys.base_prefix}
    program = os.readlink("/proc/self/exe")
    child = subprocess.Popen(arguments, executable=program, env=environment, stdin=subprocess.PIPE)
    threading.Thread(target=child.wait, daemon=True).start()
    return child


def end_with_parent():
    while os.read(0, 4096):
        pass
    os._exit(0)


def stand_still(milliseconds):
    time.sleep(milliseconds / 1000)


async def block(plan):
    while True:
        await asyncio.sleep(plan["every_ms"] / 1000)
        stand_still(plan["block_ms"])


async def leave(plan):
    await asyncio.sleep(plan["exit_s"])
    if "signal" in plan:
        os.kill(os.getpid(), plan["signal"])
    os._exit(plan.get("code", 0))


async def join(plan, children):
    await asyncio.sleep(plan["join_s"])
    children.append(start(plan["join"]))


def storm(plan):
    while True:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        time.sleep(1 / plan["storm_hz"])


async def serve(plan):
    children = [start(child) for child in plan.get("children", [])]
    tasks = []
    if "block_ms" in plan:
        tasks.append(asyncio.ensure_future(block(plan)))
    if "exit_s" in plan:
        tasks.append(asyncio.ensure_future(leave(plan)))
    if "join" in plan:
        tasks.append(asyncio.ensure_future(join(plan, children)))
    if "storm_hz" in plan:
        threading.Thread(target=storm, args=(plan,), daemon=True).start()
    print("up", os.getpid(), flush=True)
    end = time.monotonic() + plan.get("seconds", 60)
    while time.monotonic() < end:
        await asyncio.sleep(0.05)
    for child in children:
        child.stdin.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--plan", required=True)
    plan = json.loads(parser.parse_args().plan)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=end_with_parent, daemon=True).start()
    asyncio.run(serve(plan))


main()
