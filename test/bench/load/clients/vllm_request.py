"""Drives vLLM's own request function as `vllm bench serve` does: python vllm_request.py LIBRARY URL CONCURRENCY SECONDS TOKENS.

A semaphore's worth of tasks over one aiohttp session with the connector of vllm/benchmarks/serve.py; the streams begin spread over half a
second and the first second is not counted, as for `trace load`. Prints one line of JSON, times in seconds.
"""

import asyncio
import json
import sys
import time

library, url, concurrency, seconds, tokens = sys.argv[1:]
sys.path.insert(0, library)

import aiohttp  # noqa: E402
from quantiles import quantiles  # noqa: E402
from vllm_request import RequestFuncInput, async_request_openai_chat_completions  # noqa: E402

WARMUP_S = 1.0


async def main():
    n = int(concurrency)
    connector = aiohttp.TCPConnector(
        limit=n,
        limit_per_host=n,
        ttl_dns_cache=300,
        use_dns_cache=True,
        keepalive_timeout=60,
        enable_cleanup_closed=True,
        force_close=False,
    )
    measured_from = time.perf_counter() + WARMUP_S
    end = measured_from + float(seconds)
    seen = []
    failed = 0

    async with aiohttp.ClientSession(connector=connector, trust_env=True) as session:

        async def slot(i):
            nonlocal failed
            await asyncio.sleep(WARMUP_S / 2 * i / n)
            while time.perf_counter() < end:
                output = await async_request_openai_chat_completions(
                    RequestFuncInput(
                        prompt="word " * 64,
                        api_url=url + "/v1/chat/completions",
                        prompt_len=64,
                        output_len=int(tokens),
                        model="truth",
                    ),
                    session,
                )
                if not output.success:
                    failed += 1
                elif output.start_time >= measured_from:
                    seen.append(output)

        await asyncio.gather(*[slot(i) for i in range(n)])
    print(
        json.dumps(
            {
                "failed": failed,
                "ttft": quantiles([one.ttft for one in seen]),
                "itl": quantiles([gap for one in seen for gap in one.itl]),
            }
        )
    )


asyncio.run(main())
