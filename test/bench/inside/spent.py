"""Runs a command and says what it took: `spent.py FILE COMMAND...` writes {"cpu": seconds, "code": status} to FILE.

CPU is user and system time of the command and of everything it started and waited for, as the kernel counts it at their end.
"""

import json
import resource
import subprocess
import sys

code = subprocess.call(sys.argv[2:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump({"cpu": used.ru_utime + used.ru_stime, "code": code}, file)
