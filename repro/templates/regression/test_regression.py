"""Fails while the fault is there and passes after the fix: python3 -m pytest"""

import os
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
# How many runs must all be free of the fault: it does not show in each.
RUNS = int(os.environ.get("REPRO_RUNS", "5"))


@pytest.mark.parametrize("seed", range(1, RUNS + 1))
def test_fault_does_not_come_back(seed):
    script = os.path.join(HERE, "repro.py")
    environment = {**os.environ, "REPRO_SEED": str(seed)}
    ended = subprocess.run(
        [sys.executable, script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = ended.stdout.decode(errors="replace")
    if ended.returncode == 125:
        pytest.skip(output)
    assert ended.returncode == 0, output
