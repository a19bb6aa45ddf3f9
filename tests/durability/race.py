"""A data race on purpose: two threads write one array. ThreadSanitizer must report it.

A run without reports proves something only if this one has some: the interpreter is not
instrumented, and a library that was not preloaded sees nothing.
"""

import threading

import internals
import numpy as np

codes = np.ones((64_000, 8), np.uint8)
planes = np.zeros((1000, 8, 64), np.uint8)
threads = [
    threading.Thread(target=lambda: [internals.write_planes(codes, planes) for _ in range(9)])
    for _ in range(2)
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
