"""Makes the virtual environment FOLDER with the packages named, once.

Run as ``python make_environment.py FOLDER CONSTRAINTS PACKAGE...`` by the interpreter the environment is for. Any number of
processes may ask for the same folder at once: the first one builds it under a file lock (which the kernel releases however
the holder dies), the others wait. A folder without its marker file is a build that did not finish and is made anew.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import venv

MARKER = "complete"


def make(folder, constraints, packages):
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process, which is making it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(os.path.join(folder, MARKER)):
            return
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=bool(packages), symlinks=True)
        if packages:
            python = os.path.join(folder, "bin", "python")
            subprocess.run(
                [python, "-m", "pip", "install", "--progress-bar", "off", "--only-binary", ":all:"]
                + ["--disable-pip-version-check", "--no-input", "--constraint", constraints]
                + packages,
                check=True,
                stdin=subprocess.DEVNULL,
            )
        with open(os.path.join(folder, MARKER), "w") as marker:
            marker.write(" ".join(packages) + "\n")


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2], sys.argv[3:])
