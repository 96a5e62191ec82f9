"""The CMake file of an export: a library, and the program that checks it as a test."""

from __future__ import annotations

_TEXT = """\
cmake_minimum_required(VERSION 3.10)
project({prefix} C)
enable_testing()

add_library({prefix} {prefix}.c)
target_include_directories({prefix} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_target_properties({prefix} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang|ARM")
    # A product and a sum stay two roundings, as in Python.
    target_compile_options({prefix} PRIVATE -ffp-contract=off -fno-math-errno)
elseif(MSVC)
    target_compile_options({prefix} PRIVATE /fp:precise)
endif()
if(UNIX)
    target_link_libraries({prefix} PUBLIC m)
endif()

add_executable({prefix}_check {prefix}_check.c)
target_link_libraries({prefix}_check {prefix})
add_test(NAME {prefix} COMMAND {prefix}_check WORKING_DIRECTORY ${{CMAKE_CURRENT_SOURCE_DIR}})
"""


def cmake_text(prefix: str) -> str:
    """The text of `CMakeLists.txt`."""
    return _TEXT.format(prefix=prefix)
