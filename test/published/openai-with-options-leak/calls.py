"""A client with options of its own for one request."""

import openai


async def connect():
    return openai.AsyncOpenAI(api_key="x", base_url="http://127.0.0.1:1/v1")


async def own_options(client):
    with_options = client.with_options(timeout=30)
    # What the first request does before it is sent.
    with_options.platform_headers() if hasattr(with_options, "platform_headers") else None
    with_options._build_headers(openai._models.FinalRequestOptions(method="get", url="/models"))
