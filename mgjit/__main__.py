"""`python -m mgjit`."""

import sys


def _run() -> int:
    if sys.argv[1:2] == ["run"]:  # which imports little, because scripts may be short
        from mgjit.cli.run import main

        return main(sys.argv[2:])
    from mgjit.cli.main import main as every

    return every()


if __name__ == "__main__":
    sys.exit(_run())
