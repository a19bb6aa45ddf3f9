"""Methods that are not trained by gradients, each a file or a folder of its name.

None of them imports torch, and none another method: what several need stands in `shared`.
"""
