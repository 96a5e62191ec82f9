"""`step.report()`: what it says, and what it must not say."""

import re
import warnings
import xml.etree.ElementTree as ElementTree

import pytest

import mgjit
from mgjit import nn
from mgjit.errors import PhaseError, SideEffectWarning
from mgjit.report.markup import element, percent, python, seconds, size, text
from mgjit.report.page import page
from mgjit.report.report import Report
from tests.report.steps import FACTOR, SECRET, network


@pytest.fixture(scope="module")
def reported():
    """A step, its report, and the tree of the page."""
    step, arguments, model = network(cache=False, cache_key="built for this module")
    report = step.report()
    return step, report, tree(report.html), (arguments, model)


def tree(html):
    """The elements of a page, which is also well-formed XML."""
    doctype, _, rest = html.partition("\n")
    assert doctype == "<!DOCTYPE html>"
    return ElementTree.fromstring(rest)  # noqa: S314 - it is our own


def words(node):
    return " ".join(" ".join(node.itertext()).split())


def rows(page_tree):
    """The rows of the step: share in percent, and text."""
    return [(float(row.get("data-share")), words(row)) for row in page_tree.iter() if row.get("data-body") == "0"]


def test_the_shares_of_the_lines_add_up_to_100_percent(reported):
    shares = rows(reported[2])
    assert sum(share for share, _ in shares) == pytest.approx(100.0, abs=1e-3)
    assert any(share > 10 and "scores = model(x)" in line for share, line in shares)


def test_the_page_is_sound_html(reported):
    elements = list(reported[2].iter())
    identities = [one.get("id") for one in elements if one.get("id")]
    assert len(identities) == len(set(identities))
    assert {one.get("for") for one in elements if one.tag == "label"} <= set(identities)
    groups = {}
    for one in elements:
        if one.tag == "input":
            groups.setdefault(one.get("name"), []).append(one.get("checked") is not None)
    assert sorted(groups) == ["s0-line", "s0-pass", "s0-tab"]
    assert all(sum(chosen) == 1 for chosen in groups.values())
    metas = [dict(one.items()) for one in elements if one.tag == "meta"]
    assert metas == [{"charset": "utf-8"}, {"name": "viewport", "content": "width=device-width, initial-scale=1"}]
    style = next(one for one in elements if one.tag == "style").text
    shown = re.findall(r"#(s0-[\w-]+):checked\) #(s0-[\w-]+) ", style)
    assert len(shown) > 10
    assert {name for pair in shown for name in pair} <= set(identities)


def test_nothing_comes_from_elsewhere_and_no_script_runs(reported):
    html = reported[1].html
    assert "http" not in html
    assert "url(" not in html
    assert "@import" not in html
    assert "<script" not in html
    assert not any(one.get("src") or one.get("href") for one in reported[2].iter())


def test_no_number_of_the_data_is_in_it(reported):
    html, arguments = reported[1].html, reported[3][0]
    for number in (SECRET, FACTOR, *arguments[0]):
        assert str(number)[:8] not in html
        assert float(number).hex()[:10] not in html


def test_folders_of_the_user_are_left_out(reported):
    assert "steps.py" in reported[1].html
    assert "tests/report" not in reported[1].html


def test_a_line_says_which_loops_it_became_and_how_they_run(reported):
    panels = [words(one) for one in reported[2].iter() if "panel" in (one.get("class") or "").split()]
    forward = next(panel for panel in panels if panel.startswith("scores = model(x)"))
    assert "32 × 64 forward" in forward
    assert "its gradient" in forward
    assert re.search(r"C, \d+ lines", forward)
    assert "rows at a time" in forward or "lanes" in forward
    loss = next(panel for panel in panels if panel.startswith("loss = "))
    assert "(x * x) * (x * x) is several times faster" in loss
    back = next(panel for panel in panels if panel.startswith("loss.backward()"))
    assert "counted at the lines" in back


def test_the_passes_can_be_gone_through(reported):
    stages = [one for one in reported[2].iter() if "stage" in (one.get("class") or "").split()]
    assert [words(one).rstrip(" 0123456789") for one in stages][:2] == ["lift", "reductions"]
    changes = {one.get("id"): words(one) for one in reported[2].iter() if one.get("class") == "change"}
    differentiated = next(change for change in changes.values() if change.startswith("differentiate "))
    assert "gradient of line" in differentiated
    assert "before" in differentiated
    assert "after" in differentiated


def test_the_head_says_what_was_built(reported):
    step, _, page_tree, (_, model) = reported
    facts = {
        words(one.find("dt")): words(one.find("dd")) for one in page_tree.iter("div") if one.find("dt") is not None
    }
    assert facts["records"] == f"{step.stats.records:,}"
    assert facts["statements"] == f"{step.stats.statements:,}"
    assert facts["lines of C"] == f"{step.stats.lines:,}"
    assert facts["tier"] == "optimised"
    strips = [words(one) for one in page_tree.iter("section") if one.get("class") == "strip"]
    assert strips[0].startswith("Building it")
    assert all(word in strips[0] for word in ("trace", "roll", "passes", "C compiler"))
    memory = strips[1]
    places = 8 * len(step._kernels.last.parameters[0].data)  # rows are padded
    assert places >= 8 * len(model.parameters())
    assert f"parameters {size(places)}" in memory
    assert f"gradients {size(places)}" in memory
    assert "scratch" in memory


def test_it_changes_nothing():
    step, arguments, model = network()
    before = [(p.data, p.grad) for p in model.parameters()]
    calls, traces = step.stats.calls, step.stats.traces
    step.report()
    assert [(p.data, p.grad) for p in model.parameters()] == before
    assert (step.stats.calls, step.stats.traces) == (calls, traces)
    step(*arguments)
    assert step.stats.traces == traces


def test_of_code_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    key = "a key of its own"
    network(cache_key=key)
    mgjit.compiler.build.build._shared.clear()
    step, _, _ = network(cache_key=key)
    assert step.stats.cache == "hit"
    html = step.report().html
    assert "found on disk" in html
    assert "C compiler" not in html
    assert sum(share for share, _ in rows(tree(html))) == pytest.approx(100.0, abs=1e-3)


def test_of_generated_python():
    step, _, _ = network(backend="python")
    report = step.report()
    html = report.html
    assert report.studies[0].measured is not None
    assert "none: generated Python" in html
    assert "lines of Python" in html
    assert sum(share for share, _ in rows(tree(html))) == pytest.approx(100.0, abs=1e-3)


def test_of_float32():
    step, _, _ = network(dtype="float32")
    study = step.report().studies[0]
    assert study.measured is not None
    assert study.memory["parameter"] % 4 == 0


def test_a_step_that_runs_as_plain_python_says_why():
    kept = []

    @mgjit.compile(background=False)
    def grows(x):
        kept.insert(0, 1)
        return x * 2.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SideEffectWarning)
        for _ in range(3):
            grows(1.0)
    page_tree = tree(grows.report().html)
    assert "Runs as plain Python: " in words(page_tree)
    assert "kept" in words(page_tree)
    assert "def grows(x):" in words(page_tree)


def test_a_step_that_was_not_called_says_so():
    @mgjit.compile
    def step(x):
        return x * 2.0

    assert "it has not been called" in step.report().html
    assert "it has not been called" in str(step.report())


def test_code_that_is_being_built_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setenv("MGJIT_CACHE_DIR", str(tmp_path))
    step, _, _ = network(background=True)
    report = step.report()
    assert report.studies[0].findings is not None
    assert "waiting" not in report.studies[0].why_plain


def test_what_is_too_short_to_be_measured_is_estimated():
    @mgjit.compile(background=False)
    def step(x):
        y = x * 2.0
        return y + x

    step(1.0)
    report = step.report()
    assert report.studies[0].measured is None
    assert "less than 0.03 µs" in report.html
    assert sum(share for share, _ in rows(tree(report.html))) == pytest.approx(100.0, abs=1e-3)


def test_of_a_step_without_a_lock():
    step, _, _ = network(lock=False)
    assert step.report().studies[0].findings is not None


def test_of_a_step_whose_phases_are_run_separately():
    model = nn.MLP(8, [4, 1])

    @mgjit.compile(background=False)
    def step(x):
        loss = model(x)
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 0.1 * p.grad
        return loss

    step.forward([0.5] * 8)
    report = step.report()
    assert report.studies[0].why_plain == ""
    assert sum(share for share, _ in rows(tree(report.html))) == pytest.approx(100.0, abs=1e-3)


def test_the_last_structure_is_the_one():
    @mgjit.compile(background=False)
    def step(xs):
        total = 0.0
        for x in xs:
            total = total + x * x
        return total

    for length in (20, 30, 40):
        step([0.5] * length)
    step([0.5] * 30)
    study = step.report().studies[0]
    assert study.arguments == "(xs: 30 numbers)"
    said = step.report().html
    assert "traced again: xs was 20 numbers, is 30 numbers" in said
    assert "3 kernels" in said


def test_other_functions_of_the_user_have_their_own_lines():
    def square(x):
        y = x * x
        return y + 1.0

    @mgjit.compile(background=False)
    def step(xs):
        total = 0.0
        for x in xs:
            total = total + square(x)
        return total

    step([0.5] * 30)
    bodies = step.report().studies[0].findings.bodies
    assert [body.function.name.rpartition(".")[2] for body in bodies] == ["step", "square"]
    call = next(line for line in bodies[0].lines if "square(x)" in line.text)
    assert 0.0 < bodies[1].share <= call.share + 1e-9
    assert sum(line.share for line in bodies[0].lines) == pytest.approx(1.0)


def test_indices_that_a_failed_call_has_left_are_not_used():
    table = [mgjit.Value(float(k)) for k in range(5)]

    @mgjit.compile(background=False)
    def step(k):
        return table[k] * 2.0

    step(3)
    with pytest.raises(IndexError):
        step(10**9)
    assert step.report().studies[0].why_plain == ""


def test_buffers_state_and_draws_are_copied():
    import random
    from array import array

    draw = random.Random(1)
    kept = [0.0] * 20

    @mgjit.compile(background=False)
    def step(xs, table, k):
        total = table[k]
        for i, x in enumerate(xs):
            kept[i] = kept[i] + x * draw.random()
            total = total + kept[i]
        return total

    table = array("d", [1.0, 2.0, 3.0])
    step(bytes(range(20)), table, 2)
    step(bytes(range(20)), table, 2)
    state = draw.getstate()
    before = kept[:]
    study = step.report().studies[0]
    assert study.why_plain == ""
    assert draw.getstate() == state
    assert kept == before
    assert any("random" in remark for remark in study.remarks)


def test_it_can_be_saved_and_shown_in_a_notebook(tmp_path, reported):
    step, report, _, _ = reported
    report.save(tmp_path / "step.html")
    assert (tmp_path / "step.html").read_text(encoding="utf-8") == report.html
    shown = step._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<") == 2
    other = step.report(tmp_path / "other.html")
    assert (tmp_path / "other.html").read_text(encoding="utf-8") == other.html
    assert repr(report) == "<report about train>"


def test_several_steps_share_a_page():
    studies = [study for _ in range(2) for study in network()[0].report().studies]
    page_tree = tree(page(studies))
    assert [one.get("id") for one in page_tree.iter("main")] == ["s0", "s1"]
    identities = [one.get("id") for one in page_tree.iter() if one.get("id")]
    assert len(identities) == len(set(identities))
    assert "No compiled step" in words(tree(Report([]).html))


def test_as_text_the_names_are_the_users(reported):
    said = str(reported[1])
    assert "scores = model(x)" in said
    assert "32 × 64" in said
    assert "measured" in said
    assert not re.search(r"\b(dr|dt|t|r|p|g)\d+\b", said)


def test_not_inside_of_a_step():
    outer, _, _ = network()

    @mgjit.compile(background=False)
    def step(x):
        outer.report()
        return x

    with pytest.raises(PhaseError, match="report"):
        step(1.0)


def test_markup():
    assert element("p", "x", class_="a", for_="b", hidden=False) == '<p class="a" for="b">x</p>'
    assert element("input", id='"<') == '<input id="&quot;&lt;"/>'
    assert text("<\x00&>") == "&lt;\ufffd&amp;&gt;"
    assert python("for x in y:  # <") == (
        '<span class="k">for</span> x <span class="k">in</span> y:  <span class="c"># &lt;</span>'
    )
    assert (percent(0.1234), seconds(3.21e-5), seconds(0.0), size(1234567)) == ("12.3 %", "32.1 µs", "0 s", "1.23 MB")


def test_a_frozen_model_shows_its_layers():
    """It has no line of the user's: `forward` of the layers is shown, and nothing of what they are made of."""
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    x = mgjit.tensor.ones((3, 6))
    frozen = mgjit.freeze(model, x)
    frozen(x)
    study = frozen.report().studies[0]
    found = {body.function.file: body.share for body in study.findings.bodies}
    assert list(found)[:2] == ["module.py", "linear.py"]
    assert set(found) <= {"module.py", "linear.py", "activations.py"}
    assert found["module.py"] + study.findings.elsewhere == pytest.approx(1.0)
    assert found["linear.py"] > 0.5


def test_a_kernel_that_is_shared_by_lengths_is_said_to_be():
    weights = [mgjit.Value(0.1 * k) for k in range(4)]

    def step(tokens):
        state = [mgjit.Value(0.0)] * 4
        for token in tokens:
            state = [(w * s + token * w + 0.5).tanh() for w, s in zip(weights, state)]
        loss = sum(s * s for s in state)
        for w in weights:
            w.grad = 0.0
        loss.backward()
        for w in weights:
            w.data -= 0.1 * w.grad
        return loss

    compiled = mgjit.compile(step, background=False, cache=False)
    for length in (30, 31, 32):
        compiled([0.1] * length)
    assert "code for many lengths" in " ".join(compiled.report().studies[0].remarks)
    compiled([0.1] * 30)
    assert "code for many lengths" not in " ".join(compiled.report().studies[0].remarks)
