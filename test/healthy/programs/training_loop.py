"""A training loop: batches are made in a thread, gradients are computed, a checkpoint is written now and then. It has no event loop."""

import os
import queue
import sys
import tempfile
import threading
import time

import numpy


def main():
    seconds, pace = float(sys.argv[1]), 0 if sys.argv[2:3] == ["loaded"] else 0.05
    batches = queue.Queue(maxsize=8)
    generator = numpy.random.default_rng(7)

    def read():
        while True:
            data = generator.normal(size=(64, 128)).astype(numpy.float32)
            batches.put((data, data.sum(axis=1, keepdims=True)))

    threading.Thread(target=read, daemon=True, name="reader").start()
    weights = numpy.zeros((128, 1), dtype=numpy.float32)
    folder = tempfile.mkdtemp(prefix="training-")
    print("READY", os.getpid(), flush=True)
    end = time.monotonic() + seconds
    step = 0
    losses = []
    while time.monotonic() < end:
        data, wanted = batches.get()
        error = data @ weights - wanted
        weights -= 1e-3 * data.T @ error / len(data)
        losses = [*losses[-99:], float((error**2).mean())]
        step += 1
        if step % 500 == 0:
            numpy.save(os.path.join(folder, "checkpoint.npy"), weights)
        time.sleep(pace)


main()
