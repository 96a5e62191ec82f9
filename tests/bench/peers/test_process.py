"""A peer in a process of its own: its answers, its refusals, its end."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers.common import Problem
from bench.peers.process import Peer, PeerError
from bench.workloads import WORKLOADS, Sources


@pytest.fixture
def mgjit_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path / "cache"))
    peer = Peer("mgjit", sys.executable, None, tmp_path / "log")
    yield peer
    peer.end()


def test_a_workload_is_opened_and_run(mgjit_peer: Peer, tmp_path: Path) -> None:
    instance = WORKLOADS["W1"].make(Sources())
    problem = tmp_path / "problem"
    problem.write_bytes(pickle.dumps(Problem("W1", [p.data for p in instance.parameters], instance.calls, False)))
    opened = mgjit_peer.ask(120.0, do="open", problem=str(problem), compared=2)
    losses = opened["forms"]["undecorated"]
    assert losses == [float(instance.step(*arguments).data) for arguments in instance.calls[:2]]
    assert opened["forms"]["mgjit, Python backend"] == losses
    assert mgjit_peer.ask(60.0, do="time", form="undecorated", count=2)["seconds"] > 0.0
    assert mgjit_peer.ask(60.0, do="close") == {}


def test_a_peer_that_is_not_installed_says_so(tmp_path: Path) -> None:
    peer = Peer("nothing", sys.executable, None, tmp_path / "log")
    with pytest.raises(PeerError, match="No module named"):
        peer.ask(60.0, do="version")
    peer.end()


def test_an_interpreter_that_ends_is_reported(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    script.chmod(0o700)
    peer = Peer("numpy", str(script), None, tmp_path / "log")
    with pytest.raises(PeerError, match="exit code 3"):
        peer.ask(60.0, do="version")


def test_a_peer_that_takes_too_long_is_ended(mgjit_peer: Peer) -> None:
    with pytest.raises(PeerError, match="took more than"):
        mgjit_peer.ask(0.0, do="version")
    assert not mgjit_peer.running
