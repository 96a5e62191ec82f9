"""The CMake file of a directory of exports: of each a library, and the program that checks it as a test."""

from __future__ import annotations

from collections.abc import Collection

CMAKE = "CMakeLists.txt"
"""The name of the file."""

_HEAD = "# Exported by mgjit:"
_TEXT = """\
{head} {names}
cmake_minimum_required(VERSION 3.10)
project({first} C)
enable_testing()

foreach(name {names})
    add_library(${{name}} ${{name}}.c)
    target_include_directories(${{name}} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
    set_target_properties(${{name}} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang|ARM")
        # A product and a sum stay two roundings, as in Python.
        target_compile_options(${{name}} PRIVATE -ffp-contract=off -fno-math-errno)
    elseif(MSVC)
        target_compile_options(${{name}} PRIVATE /fp:precise)
    endif()
    if(UNIX)
        target_link_libraries(${{name}} PUBLIC m)
    endif()

    add_executable(${{name}}_check ${{name}}_check.c)
    target_link_libraries(${{name}}_check ${{name}})
    add_executable(${{name}}_example ${{name}}_example.c)
    target_link_libraries(${{name}}_example ${{name}})
    add_test(NAME ${{name}} COMMAND ${{name}}_check WORKING_DIRECTORY ${{CMAKE_CURRENT_SOURCE_DIR}})
endforeach()
"""


def cmake_text(names: Collection[str]) -> str:
    """The text of the file for some exports."""
    found = sorted(names)
    return _TEXT.format(head=_HEAD, names=" ".join(found), first=found[0])


def exports_of(text: str) -> list[str]:
    """The exports that such a text is for."""
    first = text.partition("\n")[0]
    return first[len(_HEAD) :].split() if first.startswith(_HEAD) else []
