"""`python -m mgjit`."""

import sys


def _run() -> int:
    if sys.argv[1:2] == ["run"]:  # which imports little, because scripts may be short
        if not getattr(sys.flags, "safe_path", False):
            del sys.path[0]  # the current folder, in which `python script.py` does not look
        from mgjit.cli.run import main

        return main(sys.argv[2:])
    from mgjit.cli.main import main as every

    return every()


if __name__ == "__main__":
    sys.exit(_run())
