"""A small OpenAI-compatible chat server on Python's standard library alone, with one planted mistake.

    python3 demo/server.py --port 8000
    curl -N localhost:8000/v1/chat/completions -d '{"model": "demo", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'

It answers GET /health, GET /v1/models and POST /v1/chat/completions, streamed as server-sent events or whole. The "model" is a
list of words, one every TOKEN_INTERVAL_S.

THE PLANTED MISTAKE: ``count_tokens`` is a synchronous pair-merging tokenizer, called from the coroutine that handles the request. For a
long prompt it computes for about BLOCKED_S, and as long as it does the event loop cannot turn: every other stream stands still.
The mend would be ``await asyncio.to_thread(count_tokens, text)``, or a faster tokenizer.
"""

import argparse
import asyncio
import collections
import itertools
import json
import os
import signal
import time

TOKEN_INTERVAL_S = 0.02
BLOCKED_S = 0.08
LONG_PROMPT = 400
MAX_HEAD = 16 * 1024
MAX_BODY = 1024 * 1024
ANSWER = "The event loop is one thread that runs every request in turn so whatever keeps it keeps everybody".split()

request_numbers = itertools.count(1)


class BadRequest(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


# --- the planted mistake -----------------------------------------------------------------------------------------------------


def count_tokens(text):
    """How many tokens a prompt has. Long prompts are merged pair by pair, over and over for as long as BLOCKED_S on any machine."""
    if len(text) < LONG_PROMPT:
        return len(text.split())
    end = time.thread_time() + BLOCKED_S
    tokens = []
    while time.thread_time() < end:
        if len(tokens) < 2:
            tokens = ["_" if letter.isspace() else letter for letter in text]
        pairs = collections.Counter(zip(tokens, tokens[1:]))
        (left, right), _ = pairs.most_common(1)[0]
        tokens = " ".join(tokens).replace(left + " " + right, left + right).split(" ")
    return len(tokens)


# --- the API -----------------------------------------------------------------------------------------------------------------


def chunk(completion, delta, finish_reason=None):
    return {
        "id": completion,
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": "demo",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


async def generate(limit):
    for word in itertools.islice(itertools.cycle(ANSWER), limit):
        await asyncio.sleep(TOKEN_INTERVAL_S)
        yield word + " "


def read_completion_request(body):
    try:
        request = json.loads(body)
        prompt = "\n".join(str(message["content"]) for message in request["messages"])
        limit = int(request.get("max_tokens", len(ANSWER)))
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequest(400, "not a chat completion request: %r" % error)
    return prompt, max(1, min(limit, 1000)), bool(request.get("stream"))


async def complete(writer, body):
    prompt, limit, stream = read_completion_request(body)
    usage = {"prompt_tokens": count_tokens(prompt), "completion_tokens": limit}  # blocks: this is the mistake
    usage["total_tokens"] = sum(usage.values())
    completion = "chatcmpl-%d" % next(request_numbers)
    if stream:
        await send_stream(writer, completion, limit)
    else:
        text = "".join([word async for word in generate(limit)])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        answer = {"id": completion, "object": "chat.completion", "created": int(time.time()), "model": "demo"}
        await send_json(writer, 200, {**answer, "choices": [choice], "usage": usage})


async def send_stream(writer, completion, limit):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n")
    await send_event(writer, json.dumps(chunk(completion, {"role": "assistant", "content": ""})))
    async for word in generate(limit):
        await send_event(writer, json.dumps(chunk(completion, {"content": word})))
    await send_event(writer, json.dumps(chunk(completion, {}, "stop")))
    await send_event(writer, "[DONE]")
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def send_event(writer, data):
    event = ("data: %s\n\n" % data).encode()
    writer.write(b"%x\r\n%s\r\n" % (len(event), event))
    await writer.drain()


async def send_json(writer, status, value):
    body = json.dumps(value).encode()
    writer.write(b"HTTP/1.1 %d \r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    await writer.drain()


async def answer(writer, method, path, body):
    if (method, path) == ("POST", "/v1/chat/completions"):
        await complete(writer, body)
    elif (method, path) == ("GET", "/v1/models"):
        await send_json(writer, 200, {"object": "list", "data": [{"id": "demo", "object": "model", "owned_by": "tracewright"}]})
    elif (method, path) == ("GET", "/health"):
        await send_json(writer, 200, {"status": "ok"})
    else:
        raise BadRequest(404, "%s %s is not served here" % (method, path))


# --- HTTP --------------------------------------------------------------------------------------------------------------------


async def read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    if len(first.split(" ")) != 3:
        raise BadRequest(400, "not HTTP")
    method, path, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        raise BadRequest(413, "the body is larger than %d bytes" % MAX_BODY)
    return method, path.partition("?")[0], await reader.readexactly(int(length))


async def serve_connection(reader, writer):
    try:
        while True:
            try:
                await answer(writer, *await read_request(reader))
            except BadRequest as error:
                await send_json(writer, error.status, {"error": {"message": str(error), "type": "invalid_request_error"}})
                if error.status == 413:  # the body is still on its way
                    break
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        pass  # the client left
    except asyncio.CancelledError:
        pass  # the server stops: this connection is nobody's child, so nobody waits for the cancellation
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server with a planted blocking call.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--seconds", type=float, default=None, help="stop by itself after so long")
    arguments = parser.parse_args()

    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = await asyncio.start_server(serve_connection, "127.0.0.1", arguments.port, limit=MAX_HEAD)
    print("READY %d %d" % (os.getpid(), server.sockets[0].getsockname()[1]), flush=True)
    try:
        await asyncio.wait_for(stopped.wait(), arguments.seconds)
    except asyncio.TimeoutError:
        pass
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
