"""Maps a file that is called as a library of CPython, and then has a pipe with the same inode number take its name: two new tmpfs count their
inodes from the same number. Needs a mount namespace of its own, which anybody may have: unshare -Urm --propagation private.

Usage: replaced_library.py FOLDER
Says `up <inode>`, or why not, and lives until its input ends.
"""
import mmap
import os
import shutil
import subprocess
import sys

folder = sys.argv[1]
path = os.path.join(folder, "libpython3.11.so.1.0")


def mount():
    subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)


mount()
shutil.copyfile(os.path.realpath("/proc/self/exe"), path)
inode = os.stat(path).st_ino
with open(path, "rb") as file:
    mapped = mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ)
mount()
said = "no pipe got that inode"
for number in range(20_000):
    pipe = os.path.join(folder, str(number))
    os.mkfifo(pipe)
    if os.stat(pipe).st_ino == inode:
        os.rename(pipe, path)
        said = f"up {inode}"
        break
    os.unlink(pipe)
print(said, flush=True)
sys.stdin.read()
