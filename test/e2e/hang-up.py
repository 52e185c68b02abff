"""Runs a command on a terminal of its own, which is closed when it has shown a text.

hang-up.py 'text' command...: prints how the command ended, `signal 1` or `code 0`; what was shown until then goes to stderr.
"""

import os
import pty
import sys

text, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b""
while text not in shown:
    try:
        part = os.read(terminal, 65536)
    except OSError:
        break
    if not part:
        break
    shown += part
os.close(terminal)
_, status = os.waitpid(pid, 0)
if os.WIFSIGNALED(status):
    print("signal %d" % os.WTERMSIG(status))
else:
    print("code %d" % os.WEXITSTATUS(status))
sys.stderr.buffer.write(shown)
