"""How long a fit on vectors is: the modules it opens, the calls before the first gradient."""

import subprocess
import sys

MOST_MODULES, MOST_CALLS = 31, 600
SCRIPT = """
import sys
from collections import Counter
import numpy as np
import torch
from rankbits import methods

modules, calls, has_gradient = set(), Counter(), False

def watch(frame, event, arg):
    global has_gradient
    name = frame.f_globals.get("__name__", "")
    if event == "call" and name.startswith("rankbits"):
        calls[has_gradient] += 1
        modules.add(name)
    has_gradient = has_gradient or frame.f_code is torch.Tensor.backward.__code__

y = np.arange(200) % 4
x = np.random.default_rng(0).standard_normal((200, 16)) + y[:, None]
hasher = methods.get("talr-ap", epochs=1, random_state=0)  # an MLP, as y is class labels
sys.setprofile(watch)
hasher.fit(x, y)
sys.setprofile(None)
print(calls[False], *sorted(name for name in modules if name.startswith("rankbits.methods.")))
print(*sorted(name for name in sys.modules if name.startswith("rankbits.methods.")))
"""


def test_a_fit_on_vectors_opens_few_modules_and_none_of_pictures_or_logs():
    page = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    ).stdout
    (n_calls, *opened), loaded = (line.split() for line in page.splitlines())
    assert len(opened) <= MOST_MODULES, opened
    assert int(n_calls) <= MOST_CALLS
    assert "rankbits.methods.training.logged_queries" not in opened
    assert not [name for name in loaded if name.startswith("rankbits.methods.vision")]
