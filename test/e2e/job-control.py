"""Runs a command as the foreground job of a shell on a terminal of its own, and types into it.

job-control.py '[["ready", "\\u0003"]]' command...: when the terminal has shown the first text, types the second, one pair after the other.
Everything the terminal shows goes to stdout, then `stopped` each time the job was stopped (it is continued), and `ended <status>`.
"""

import json
import os
import pty
import signal
import sys
import time

typed = json.loads(sys.argv[1])
command = sys.argv[2:]


def shell():
    """What an interactive shell does with one foreground job."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(command[0], command)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            os.write(1, b"ended %d\n" % code)
            os._exit(0)
        os.write(1, b"stopped\n")
        os.tcsetpgrp(0, job)
        time.sleep(0.3)
        os.killpg(job, signal.SIGCONT)


pid, terminal = pty.fork()
if pid == 0:
    shell()
shown = b""
while True:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
    os.write(1, part)
    while typed and typed[0][0].encode() in shown:
        os.write(terminal, typed.pop(0)[1].encode())
os.waitpid(pid, 0)
