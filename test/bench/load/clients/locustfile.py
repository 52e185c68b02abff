"""What a locust user writes to time streamed completions: FastHttpUser, each event read as soon as it is there (locust's own iter_lines waits
for 1,024 bytes). Prints one line of JSON at the end, times in seconds. The first second and the requests begun in it are not counted.
"""

import json
import os
import time

from locust import FastHttpUser, constant, events, task
from quantiles import quantiles

WARMUP_S = 1.0
TOKENS = int(os.environ["BENCH_TOKENS"])
BODY = json.dumps(
    {
        "model": "truth",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": "word " * 64}],
    }
)
HEADERS = {"Content-Type": "application/json"}
ttft = []
itl = []
failed = 0
measured_from = None


@events.test_start.add_listener
def on_start(**_):
    global measured_from
    measured_from = time.perf_counter() + WARMUP_S


class Streams(FastHttpUser):
    wait_time = constant(0)
    network_timeout = 120.0

    @task
    def stream(self):
        global failed
        start = time.perf_counter()
        with self.client.post(
            "/v1/chat/completions", data=BODY, headers=HEADERS, stream=True, catch_response=True
        ) as response:
            if response.status_code != 200:
                failed += 1
                response.failure("status")
                return
            measured = start >= measured_from
            last = 0.0
            while True:
                event = response.stream.readline(b"\n\n")
                if not event:
                    break
                now = time.perf_counter()
                data = event[6:-2]
                if data == b"[DONE]":
                    continue
                choices = json.loads(data)["choices"]
                if not choices or not choices[0]["delta"].get("content"):
                    continue
                if measured:
                    if last == 0.0:
                        ttft.append(now - start)
                    else:
                        itl.append(now - last)
                last = now
            response.success()


@events.quitting.add_listener
def on_quitting(**_):
    print(json.dumps({"failed": failed, "ttft": quantiles(ttft), "itl": quantiles(itl)}), flush=True)
