"""The papers, run again: every table and figure as data and a function of result files.

    from rankbits import papers

    papers.run([papers.exhibit("rsh-fig2")], "out", data="data")   # what is there is skipped
    papers.write_report("out")                                      # out/index.html

`exhibits` lists them. An exhibit never trains anything while it is drawn: runs are files of
`rankbits.benchmark`, and the same files give the same page.
"""

from rankbits.papers._catalogue import exhibit, exhibits
from rankbits.papers._exhibit import Exhibit, Part, View
from rankbits.papers._page import sections, write_report
from rankbits.papers._run import Progress, run

__all__ = [
    "Exhibit",
    "Part",
    "Progress",
    "View",
    "exhibit",
    "exhibits",
    "run",
    "sections",
    "write_report",
]
