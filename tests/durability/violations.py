"""How a tool tells what it did and what went wrong."""

import json
import sys
import time


class Violation(Exception):
    """Something that must not happen, in one line."""


class Report:
    """Counts of a run. The first violation ends it, unless the run is to go on and count them."""

    def __init__(self, tool, *, goes_on=False):
        self.counts = {"tool": tool}
        self._goes_on, self._start = goes_on, time.monotonic()
        self._n_by_sentence = {}

    def count(self, name, n=1):
        self.counts[name] = self.counts.get(name, 0) + n

    def violation(self, sentence, detail, repeat):
        """Tell a violation and the command that repeats it; `detail` is not part of its sort."""
        n = self._n_by_sentence[sentence] = self._n_by_sentence.get(sentence, 0) + 1
        if n <= 3:
            fields = {"violation": sentence, "detail": str(detail), "repeat": repeat}
            sys.stderr.write(json.dumps(fields) + "\n")
            sys.stderr.flush()
        if not self._goes_on:
            self.finish()

    def finish(self):
        """Print the counts and end the process."""
        self.counts["violations"] = sum(self._n_by_sentence.values())
        if self._goes_on and self._n_by_sentence:
            self.counts["by_sort"] = self._n_by_sentence
        self.counts["seconds"] = round(time.monotonic() - self._start, 1)
        sys.stdout.write(json.dumps(self.counts) + "\n")
        sys.stdout.flush()
        raise SystemExit(1 if self._n_by_sentence else 0)
