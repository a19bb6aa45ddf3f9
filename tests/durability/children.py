"""Processes of a test: forks that tell messages and take commands, and end only when killed."""

import json
import os
import select
import signal
import time
import traceback

PATIENCE = 30.0  # seconds


class Child:
    """A fork that tells messages and takes commands."""

    def __init__(self, run):
        self._from_child, to_parent = os.pipe()
        from_parent, self._to_child = os.pipe()
        self._rest = b""
        self.pid = os.fork()
        if self.pid:
            os.close(to_parent)
            os.close(from_parent)
            return
        os.close(self._from_child)
        os.close(self._to_child)

        def tell(event, **fields):
            os.write(to_parent, json.dumps({"event": event, **fields}).encode() + b"\n")

        try:
            run(tell, lambda: os.read(from_parent, 1).decode())
        except BaseException as error:  # noqa: BLE001  a fork must not return
            what = "a process ended with an exception that is not of rankbits"
            trace = traceback.format_exc()[-1500:]
            tell("broke", what=what, text=f"{type(error).__name__}: {error}; {trace}")
        while True:
            signal.pause()

    def messages_until(self, last):
        """What the child tells, up to an event that ends it."""
        messages, end = [], time.monotonic() + PATIENCE
        while not messages or messages[-1]["event"] not in (last, "broke"):
            if not select.select([self._from_child], [], [], max(end - time.monotonic(), 0))[0]:
                return [*messages, {"event": "broke", "what": "a process hangs", "text": last}]
            data = os.read(self._from_child, 1 << 16)
            if not data:
                return [*messages, {"event": "broke", "what": "a process died", "text": last}]
            *lines, self._rest = (self._rest + data).split(b"\n")
            messages += [json.loads(line) for line in lines]
        return messages

    def command(self, letter="."):
        os.write(self._to_child, letter.encode())

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._from_child)
        os.close(self._to_child)


def encoded(model):
    """A content, id to code, for a message."""
    return [[key, code.hex()] for key, code in model.items()]


def decoded(pairs):
    """The content that a message tells."""
    return {key: bytes.fromhex(code) for key, code in pairs}
