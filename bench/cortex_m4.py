"""Programs for a Cortex-M4 with floating-point unit, run under QEMU (machine mps2-an386) with semihosting.

Debian packages: gcc-arm-none-eabi, libnewlib-arm-none-eabi, qemu-system-arm.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

COMPILER, SIZE, EMULATOR = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
PROCESSOR = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
FLAGS = ("-std=c99", "-Os", "-ffp-contract=off")

_START = """\
#include <stdint.h>

extern uint32_t stack_end, data_start, data_end, data_load, bss_start, bss_end;
extern void initialise_monitor_handles(void);
extern int main(void);
extern void exit(int) __attribute__((noreturn));

void _init(void) {}
void _fini(void) {}

static void stop(void) { exit(100); }

void reset(void)
{
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating-point unit is on */
    __asm volatile("dsb\\n isb");
    for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    *(volatile uint32_t *)0xE000E014 = 0xFFFFFF; /* SysTick counts down at the clock of the processor */
    *(volatile uint32_t *)0xE000E018 = 0;
    *(volatile uint32_t *)0xE000E010 = 5;
    initialise_monitor_handles();
    exit(main());
}

__attribute__((section(".vectors"), used)) static const uintptr_t vectors[] = {
    (uintptr_t)&stack_end, (uintptr_t)reset, (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop, (uintptr_t)stop,
    (uintptr_t)stop,
};
"""

_MEMORY = """\
MEMORY
{
  flash (rx) : ORIGIN = 0x00000000, LENGTH = 4M
  ram (rwx) : ORIGIN = 0x20000000, LENGTH = 4M
}
SECTIONS
{
  .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > flash
  .ARM.exidx : { *(.ARM.exidx*) } > flash
  data_load = LOADADDR(.data);
  .data : { . = ALIGN(4); data_start = .; *(.data*) . = ALIGN(4); data_end = .; } > ram AT > flash
  .bss : { . = ALIGN(4); bss_start = .; *(.bss*) *(COMMON) . = ALIGN(4); bss_end = .; } > ram
  end = .;
  stack_end = ORIGIN(ram) + LENGTH(ram);
}
"""

#: With `-icount shift=0`, an instruction takes a nanosecond, and the clock of the processor has 25 MHz.
INSTRUCTIONS_PER_TICK = 40


def missing() -> list[str]:
    """The programs that are needed and not installed."""
    return [name for name in (COMPILER, SIZE, EMULATOR) if shutil.which(name) is None]


def built(folder: Path, sources: Sequence[Path], includes: Sequence[Path] = ()) -> Path:
    """A program of C files, which has a `main` and may print."""
    start, memory, program = folder / "start.c", folder / "memory.ld", folder / "program.elf"
    start.write_text(_START)
    memory.write_text(_MEMORY)
    folders = [f"-I{path}" for path in includes]
    first = [COMPILER, *PROCESSOR, "-std=gnu99", "-Os", "-fno-tree-loop-distribute-patterns", "-c", str(start)]
    subprocess.run([*first, "-o", str(folder / "start.o")], check=True)
    texts = [str(path) for path in sources]
    linked = ["-nostartfiles", "--specs=rdimon.specs", "-T", str(memory), "-lm", "-o", str(program)]
    subprocess.run([COMPILER, *PROCESSOR, *FLAGS, *folders, *texts, str(folder / "start.o"), *linked], check=True)
    return program


def ran(program: Path, counting: bool = False) -> tuple[int, str]:
    """Exit code and output of a program.

    Args:
        counting: whether time is counted in instructions (see `INSTRUCTIONS_PER_TICK`).
    """
    command = [EMULATOR, "-M", "mps2-an386", "-cpu", "cortex-m4", "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    command += ["-icount", "shift=0"] if counting else []
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def sizes(folder: Path, source: Path, includes: Sequence[Path] = ()) -> dict[str, int]:
    """Bytes of a C file alone, compiled: `.text` is code, `.rodata` constant data, `.data` and `.bss` are RAM."""
    made = folder / "alone.o"
    folders = [f"-I{path}" for path in includes]
    command = [COMPILER, *PROCESSOR, *FLAGS, "-ffunction-sections", *folders, "-c", str(source), "-o", str(made)]
    subprocess.run(command, check=True, stderr=subprocess.PIPE)
    text = subprocess.run([SIZE, "-A", str(made)], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {".text": 0, ".rodata": 0, ".data": 0, ".bss": 0}
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        kind = next((kind for kind in found if name == kind or name.startswith(f"{kind}.")), None)
        if kind is not None:
            found[kind] += int(rest.split()[0])
    return found
