"""Runs the transactions of SQL files in a PostgreSQL, with psycopg, psycopg2 or pg8000.

The environment variable that parameters.json names (oracle.env) says which, as a URL: it is
written down nowhere. Take a copy: with "end": "commit" what the transactions do stays.
"""

import json
import os
import re
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.environ.get("REPRO_PARAMETERS") or os.path.join(HERE, "parameters.json")) as file:
    ORACLE = json.load(file)["oracle"]
VARIABLE = ORACLE.get("env", "DATABASE_URL")
ISOLATION = ORACLE.get("isolation", "read committed").replace("-", " ").upper()
END = ORACLE.get("end", "rollback").upper()
# Between two statements of a transaction, as a program thinks between them.
PAUSE = ORACLE.get("pause_s", 0.005)

# Quoted texts, names and comments, in which a semicolon ends nothing.
PIECE = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$|--[^\n]*|/\*.*?\*/|;|.", re.DOTALL
)
# The script begins and ends transactions itself.
CONTROL = re.compile(r"(?:BEGIN|START\s+TRANSACTION|COMMIT|END|ROLLBACK)\b[^;]*$", re.IGNORECASE)

connections = threading.local()


def statements(name):
    """The statements of a file."""
    with open(os.path.join(HERE, name), encoding="utf-8") as sql:
        text = sql.read()
    found = [""]
    for piece in PIECE.finditer(text):
        part = piece.group()
        if part == ";":
            found.append("")
        elif not part.startswith(("--", "/*")):
            found[-1] += part
    stripped = [one.strip() for one in found]
    return [one for one in stripped if one and not CONTROL.match(one)]


def connect():
    url = os.environ.get(VARIABLE)
    if not url:
        raise RuntimeError(f"{VARIABLE} is not set: the URL of a PostgreSQL to try it in")
    for name in ("psycopg", "psycopg2"):
        try:
            return __import__(name).connect(url)
        except ImportError:
            pass
    try:
        import pg8000.dbapi
    except ImportError:
        raise RuntimeError("it takes psycopg, psycopg2 or pg8000: pip install pg8000") from None
    parts = urllib.parse.urlsplit(url)
    return pg8000.dbapi.connect(
        user=urllib.parse.unquote(parts.username or os.environ.get("PGUSER", "postgres")),
        password=urllib.parse.unquote(parts.password or os.environ.get("PGPASSWORD", "")) or None,
        host=parts.hostname or "localhost",
        port=parts.port or 5432,
        database=urllib.parse.unquote(parts.path[1:]) or None,
    )


def cursor():
    """A cursor of this thread's own connection, which begins nothing by itself."""
    if not hasattr(connections, "cursor"):
        connection = connect()
        connection.autocommit = True
        # Kept with it: a connection that nobody holds is closed.
        connections.connection = connection
        connections.cursor = connection.cursor()
        try:
            # A second, usually; to change it takes a superuser.
            connections.cursor.execute("SET deadlock_timeout = '20ms'")
        except Exception:
            connections.cursor.execute("ROLLBACK")
    return connections.cursor


def run(name):
    """One transaction: the statements of a file, then the end that was asked for."""
    one = cursor()
    one.execute(f"BEGIN ISOLATION LEVEL {ISOLATION}")
    try:
        for statement in statements(name):
            one.execute(statement)
            time.sleep(PAUSE)
        one.execute(END)
    except Exception:
        one.execute("ROLLBACK")
        raise


def ready():
    """Fails where there is no driver or no server."""
    cursor().execute("SELECT 1")
