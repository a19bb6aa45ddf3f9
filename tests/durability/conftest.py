"""The tools beside the tests are scripts, which find each other in their own folder only."""

import sys
from pathlib import Path

_HERE = Path(__file__).parent
sys.path.append(str(_HERE))
collect_ignore = [path.name for path in _HERE.glob("*.py") if not path.name.startswith("test_")]
