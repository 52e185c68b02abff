"""
Runs a Python program under a schedule.

    python schedule_driver.py SCHEDULE RECORD script.py args…     once
    python schedule_driver.py --serve                             for each line of JSON on stdin, in a child of its own

SCHEDULE is JSON ({"strategy": "random", "seed": 7, "rate": 0.2, "most": 4}); RECORD is a file that gets what the run met.
"""

import json
import sys

# Nothing is left beside our own files; the program's own are cached as ever.
writes = sys.dont_write_bytecode
sys.dont_write_bytecode = True
from tracewright_schedules.program import install, run_program  # noqa: E402
from tracewright_schedules.serve import serve  # noqa: E402

sys.dont_write_bytecode = writes

if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve()
    else:
        install(json.loads(sys.argv[1]), sys.argv[2])
        run_program(sys.argv[3:])
