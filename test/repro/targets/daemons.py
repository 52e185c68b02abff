"""Functions that do their work and leave something running."""

import os
import subprocess
import time

# Nothing of a test that fails stays for ever.
SECONDS = 120


def leave_daemon():
    """In a session of its own, as daemons make one, with our outputs still open."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(SECONDS)
        os._exit(0)


def leave_child():
    """In our process group, without our outputs."""
    quiet = subprocess.DEVNULL
    subprocess.Popen(["sleep", str(SECONDS)], stdin=quiet, stdout=quiet, stderr=quiet)


def stay():
    """Never ends, and neither does the process that it starts in another session."""
    if os.fork() == 0:
        os.setsid()
        note("daemon")
        time.sleep(SECONDS)
        os._exit(0)
    note("trial")
    time.sleep(SECONDS)


def note(name):
    """Says who we are in a file that is there when it is whole."""
    path = os.path.join(os.environ["NOTES"], name)
    with open(path + ".partial", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".partial", path)
