"""What a collection may hold, given what its writer and a reader were told.

A change whose outcome the writer was not told may be there or not: each is a history. What is told
later rules histories out.
"""

from dataclasses import dataclass, field

import internals
from children import decoded
from violations import Violation


@dataclass(frozen=True)
class History:
    """A content that is possible, and the changes of unknown outcome that it contains."""

    model: dict
    extra: frozenset = frozenset()


@dataclass
class Histories:
    """All histories that agree with what the writer was told."""

    possible: list
    believes: bool  # an error that says that nothing was changed
    targets: dict = field(
        default_factory=dict
    )  # of snapshots: number -> (was acknowledged, models)

    def acknowledge(self, change):
        able = [one for one in self.possible if change.is_possible(one.model)]
        if not able:
            raise Violation("a change was acknowledged that was not possible")
        self._note_target(change, is_sure=True)
        self.possible = [History(change.applied(one.model), one.extra) for one in able]

    def fail(self, number, change, message):
        self._note_target(change, is_sure=False)
        if self.believes and internals.says_unchanged(message):
            return
        able = [one for one in self.possible if change.is_possible(one.model)]
        more = [History(change.applied(one.model), one.extra | {number}) for one in able]
        self.possible += [
            new for new in more if all(new.model != old.model for old in self.possible)
        ]

    def refuse(self, change, message):
        seen = [one for one in self.possible if not change.is_possible(one.model)]
        if not seen and change.kind not in ("snapshot", "copy"):
            raise Violation(f"a possible change was refused: {change.kind}: {message}")
        self._pin(seen)

    def see(self, model, who):
        seen = [one for one in self.possible if one.model == model]
        if not seen:
            raise Violation(f"{who} sees a content that no history explains")
        self._pin(seen)

    def _pin(self, seen):
        """A state that was seen is not taken back; one whose outcome is open may still arrive."""
        if seen:
            self.possible = [
                one for one in self.possible if any(old.extra <= one.extra for old in seen)
            ]

    def _note_target(self, change, *, is_sure):
        if change.kind in ("snapshot", "copy"):
            was_sure, models = self.targets.get(change.number, (False, []))
            if not was_sure:
                models = models + [one.model for one in self.possible]
                self.targets[change.number] = (is_sure, models)


def judge(messages, changes, first, *, believes):
    """The histories that explain what the writer and the reader have told."""
    histories = Histories([History(first)], believes)
    for number, message in enumerate(messages):
        change = changes[message["change"]] if "change" in message else None
        if message["event"] == "returned":
            histories.acknowledge(change)
        elif message["event"] == "failed":
            histories.fail(number, change, message["text"])
        elif message["event"] == "refused":
            histories.refuse(change, message["text"])
        elif message["event"] == "sees":
            histories.see(decoded(message["content"]), message["who"])
        elif message["event"] == "broke":
            raise Violation(f"{message['what']}: {message['text']}")
    return histories
