"""Sends recorded requests again and looks whether an oracle holds.

Run: python3 traffic.py
"""

import http.client
import json
import os
# region: cross-talk
import re
# endregion
import sys
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.environ.get("REPRO_PARAMETERS") or os.path.join(HERE, "parameters.json")) as file:
    PARAMETERS = json.load(file)
TRAFFIC = PARAMETERS["traffic"]
ORACLE = PARAMETERS["oracle"]
ATTEMPTS = PARAMETERS["attempts"]
CONCURRENCY = PARAMETERS["concurrency"]
GIVEN = os.environ.get("REPRO_BASE_URL")
KEY = os.environ.get("REPRO_API_KEY")
BASE = urllib.parse.urlsplit(GIVEN or TRAFFIC["base_url"])
# What a server may take for one answer before it counts as failed.
TIMEOUT = ORACLE.get("within_s", PARAMETERS["timeout_s"])


def cannot_test(reason):
    print(f"cannot test: {reason}", file=sys.stderr)
    sys.stderr.flush()
    sys.stdout.flush()
    os._exit(125)


def connect():
    kind = http.client.HTTPSConnection if BASE.scheme == "https" else http.client.HTTPConnection
    return kind(BASE.hostname, BASE.port, timeout=TIMEOUT)


class Attempt:
    """One request: what is sent, and what comes back."""

    def __init__(self, number):
        requests = TRAFFIC["requests"]
        self.number = number
        self.request = requests[number % len(requests)]
        # Once through them all, they start again where the last one was sent.
        rounds = number // len(requests)
        self.offset = self.request["offset_s"] + rounds * requests[-1]["offset_s"]
        self.status = None
        self.answer = ""
        self.error = None
        # region: head-of-line
        self.began = self.ended = 0.0
        # endregion

    def send(self):
        headers = {**self.request["headers"], "Connection": "close"}
        if KEY:
            headers["Authorization"] = "Bearer " + KEY
        body = self.request["body"]
        # region: cross-talk
        body = None if body is None else body.replace("{nonce}", mark(self.number))
        # endregion
        # region: head-of-line
        self.began = time.monotonic()
        # endregion
        connection = connect()
        try:
            path = BASE.path.rstrip("/") + self.request["path"]
            data = None if body is None else body.encode()
            connection.request(self.request["method"], path, data, headers)
            response = connection.getresponse()
            self.status = response.status
            self.answer = response.read().decode(errors="replace")
            if self.status >= 400:
                self.error = f"{self.status} {self.answer[:200]}"
        except (OSError, http.client.HTTPException) as error:
            self.error = f"{type(error).__name__}: {error}"
        finally:
            connection.close()
            # region: head-of-line
            self.ended = time.monotonic()
            # endregion

    def __str__(self):
        return f"attempt {self.number} ({self.request['method']} {self.request['path']})"


def check_server():
    """Without a server nothing can be tested."""
    if BASE.scheme not in ("http", "https") or not BASE.hostname:
        cannot_test(f"{BASE.geturl()} is no address of http or https")
    if KEY and not GIVEN:
        cannot_test(
            f"REPRO_API_KEY is set, and {BASE.netloc} comes from a recording: "
            "name the server that may have the key in REPRO_BASE_URL"
        )
    connection = connect()
    try:
        connection.connect()
    except OSError as error:
        cannot_test(f"{BASE.scheme}://{BASE.netloc} does not answer: {error}")
    finally:
        connection.close()


def send_all(attempts):
    """Sends each at its time after the first, that many at once at most."""
    waiting = iter(attempts)
    lock = threading.Lock()
    start = time.monotonic()

    def work():
        while True:
            with lock:
                attempt = next(waiting, None)
            if attempt is None:
                return
            time.sleep(max(0.0, start + attempt.offset - time.monotonic()))
            attempt.send()

    workers = min(CONCURRENCY, len(attempts))
    threads = [threading.Thread(target=work, daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def make_attempts():
    return [Attempt(number) for number in range(ATTEMPTS)]


# region: cross-talk, same-alone, head-of-line
def answered(attempts):
    """The attempts that were answered; without any there is nothing to look at."""
    found = [one for one in attempts if one.error is None]
    if not found:
        cannot_test(f"every request failed, the first: {attempts[0]}: {attempts[0].error}")
    return found


# endregion
# region: same-alone
def said(answer):
    """The text of an answer of a model, without its id and time; any other answer as it is."""
    events = [line[5:].strip() for line in answer.split("\n") if line.startswith("data:")]
    texts = []
    for event in events or [answer]:
        try:
            choices = json.loads(event)["choices"]
        except (ValueError, KeyError, TypeError):
            continue
        for choice in choices:
            part = choice.get("message") or choice.get("delta") or {}
            texts.append(part.get("content") or choice.get("text") or "")
    return "".join(texts) if texts else answer


# endregion
# region: exception
def check_exceptions():
    """No request may fail."""
    attempts = make_attempts()
    send_all(attempts)
    return [f"{one}: {one.error}" for one in attempts if one.error is not None]


# endregion
# region: cross-talk
MARK = re.compile(r"mark-\d{6}-end")


def mark(number):
    return f"mark-{number:06d}-end"


def check_answers():
    """No answer may hold the mark of another request."""
    attempts = make_attempts()
    send_all(attempts)
    lines = []
    for one in answered(attempts):
        strange = set(MARK.findall(one.answer)) - {mark(one.number)}
        if strange:
            lines.append(f"{one} was answered with {', '.join(sorted(strange))}")
    return lines


# endregion
# region: same-alone
def check_alone():
    """The same request must be answered alike alone and in company."""
    expected = {}
    for number in range(min(ATTEMPTS, len(TRAFFIC["requests"]))):
        alone = [Attempt(number), Attempt(number)]
        for one in alone:
            one.send()
        texts = {said(one.answer) for one in answered(alone)}
        if len(texts) > 1:
            cannot_test("the same request is answered differently alone: is its temperature 0?")
        expected[number] = texts.pop()
    attempts = make_attempts()
    send_all(attempts)
    lines = []
    for one in answered(attempts):
        alone = expected[one.number % len(TRAFFIC["requests"])]
        if said(one.answer) != alone:
            lines.append(f"{one} gave {said(one.answer)[:60]!r}, alone {alone[:60]!r}")
    return lines


# endregion
# region: no-progress
def check_progress():
    """Every request must be answered in time."""
    attempts = make_attempts()
    send_all(attempts)
    return [f"{one}: no answer within {TIMEOUT} s" for one in attempts if one.status is None]


# endregion
# region: head-of-line
def check_others():
    """A small request must be answered quickly while others run."""
    limit = ORACLE.get("limit_s", 0.1)
    probe = {"method": "GET", "path": ORACLE.get("probe", "/"), "headers": {}, "body": None}
    waits = []
    is_over = threading.Event()

    def beat():
        while not is_over.is_set():
            one = Attempt(0)
            one.request = probe
            one.send()
            if one.ended - one.began > limit:
                waits.append(one)
            time.sleep(0.02)

    attempts = make_attempts()
    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    send_all(attempts)
    is_over.set()
    heart.join()
    lines = []
    for one in answered(attempts):
        kept = [w.ended - w.began for w in waits if one.began < w.ended and w.began < one.ended]
        if kept:
            lines.append(f"another waited {max(kept):.3f} s while {one} ran")
    return lines


# endregion
CHECKS = {
    # region: exception
    "exception": check_exceptions,
    # endregion
    # region: cross-talk
    "cross-talk": check_answers,
    # endregion
    # region: same-alone
    "same-alone": check_alone,
    # endregion
    # region: no-progress
    "no-progress": check_progress,
    # endregion
    # region: head-of-line
    "head-of-line": check_others,
    # endregion
}


def main():
    if ORACLE["kind"] not in CHECKS:
        cannot_test("this script has no check for " + ORACLE["kind"])
    check_server()
    lines = CHECKS[ORACLE["kind"]]()
    for line in lines[:5]:
        print(line)
    print(f"Errors: {len(lines)} / {ATTEMPTS}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
