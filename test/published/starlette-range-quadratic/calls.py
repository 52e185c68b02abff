"""A file is asked for with a range that is a long run of digits."""

from starlette.responses import FileResponse


async def download(digits):
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"range", b"bytes=" + b"1" * digits + b",0-99")] if digits else []
    scope = {"type": "http", "method": "GET", "headers": headers}
    await FileResponse(__file__)(scope, receive, send)
    return sent[0]["status"]
