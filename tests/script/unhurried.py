"""`python -m mgjit`, in which no step is given up for the time that its calls take.

What a test says about compiled calls then holds on a machine that does much else, too.
"""

import math
import sys

from mgjit.__main__ import _run
from mgjit.script import trying

trying._WORTH = trying._LOST = trying._IN_VAIN = math.inf  # type: ignore[misc]

if __name__ == "__main__":
    sys.exit(_run())
