"""A Jupyter kernel that somebody works in: a cell now and then, its results kept in variables."""

import os
import sys
import time


def main():
    from jupyter_client.manager import KernelManager

    seconds, every = float(sys.argv[1]), 0.2 if sys.argv[2] == "loaded" else 3
    plant_every = float(sys.argv[3])
    manager = KernelManager()
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)

    def run(code):
        client.execute(code, store_history=False)

    run("import time\ntable = {}\ndef planted_block():\n    time.sleep(0.06)")
    time.sleep(1)
    print("READY", manager.provisioner.process.pid, flush=True)
    end = time.monotonic() + seconds
    planted = time.monotonic() + plant_every
    cells = 0
    while time.monotonic() < end:
        run(f"table[{cells % 100}] = [n * n for n in range(1000)]")
        cells += 1
        if time.monotonic() > planted:
            planted += plant_every
            run("planted_block()")
        for channel in (client.iopub_channel, client.shell_channel):
            while channel.msg_ready():
                channel.get_msg()
        time.sleep(every)
    manager.shutdown_kernel(now=True)
    os._exit(0)


main()
