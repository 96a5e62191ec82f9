"""`python -m mgjit`."""

import sys

from mgjit.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
