"""What an index holds: immutable segments, parts of a state, and the changes from state to state.

- `segment`: codes in order of id, laid out for the kernels
- `part`: a segment and which of its items are still there
- `state`: all parts at one moment
- `changes`: add, upsert, remove, compact, and when parts are merged
- `merge`: several parts as one, in order of id, without holding them in memory
"""
