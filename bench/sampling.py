"""Tokens a second of a small language model: sampling with a frozen step, and beside it with numpy, jax and torch.

    taskset -c 1 python bench/sampling.py
    taskset -c 1 python bench/sampling.py --seconds 2 --ways loop calls jax

The model is that of the published microgpt: width 16, 4 heads, one layer, 16 positions, 27 letters, 4,192 parameters,
random here.  Samples have 16 tokens, without an end.  Each way divides by a temperature, takes the softmax and chooses.

1. `calls`: one call a token; keys and values in `mgjit.state`, the position and the last token are arguments.
2. `lists`: one call a token; keys and values in lists that the step appends to: a kernel for each length.
3. `loop`: `.loop` makes a sample a row; inside, the letter that is chosen is the next index.
4. `scores`: the loss of given tokens, by the training kernel's `.forward`, by the frozen step and by `.loop` of it.

Processor time, the best of several rounds.  What mgjit samples in float64 is compared with plain Python bit for bit;
the logits of the other libraries are compared up to roundings.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import mgjit  # noqa: E402 - found through the line above

WIDTH, HEADS, POSITIONS, LETTERS = 16, 4, 16, 27
SIZE = WIDTH // HEADS
TEMPERATURE = 0.5
Matrix = list[list[float]]


def random_weights(seed: int = 42) -> dict[str, Matrix]:
    """The parameters, by name."""
    made = random.Random(seed)
    shapes = {
        "wte": (LETTERS, WIDTH), "wpe": (POSITIONS, WIDTH), "lm_head": (LETTERS, WIDTH),
        **dict.fromkeys(("wq", "wk", "wv", "wo"), (WIDTH, WIDTH)),
        "fc1": (4 * WIDTH, WIDTH), "fc2": (WIDTH, 4 * WIDTH),
    }  # fmt: skip
    return {
        name: [[made.gauss(0.0, 0.2) for _ in range(columns)] for _ in range(rows)]
        for name, (rows, columns) in shapes.items()
    }


# ---- the model, in scalar Python: over floats, and over Values for training -----------------------------------


def linear(x: Sequence[Any], w: Sequence[Sequence[Any]]) -> list[Any]:
    """A matrix times a vector."""
    return [sum(wi * xi for wi, xi in zip(row, x)) for row in w]


def softmax(xs: Sequence[Any], highest: Any) -> list[Any]:
    """Exponentials of the differences to the highest, divided by their sum."""
    powers = [mgjit.exp(x - highest) for x in xs]
    total = sum(powers)
    return [power / total for power in powers]


def normed(x: Sequence[Any]) -> list[Any]:
    """Divided by the root of the mean of squares."""
    scale = (sum(xi * xi for xi in x) / len(x) + 1e-5) ** -0.5
    return [xi * scale for xi in x]


class Model:
    """The model over some weights.

    Args:
        weights: floats or Values.
        highest: the highest of some numbers, as a float.
    """

    def __init__(self, weights: dict[str, Any], highest: Callable[[Sequence[Any]], Any]) -> None:
        self.weights, self.highest = weights, highest
        self.keys, self.values = mgjit.zeros(POSITIONS * WIDTH), mgjit.zeros(POSITIONS * WIDTH)

    def vectors(self, letter: int, position: int) -> tuple[list[Any], ...]:
        """The residual stream, and a query, a key and a value."""
        w = self.weights
        x = normed([t + p for t, p in zip(w["wte"][letter], w["wpe"][position])])
        y = normed(x)
        return x, linear(y, w["wq"]), linear(y, w["wk"]), linear(y, w["wv"])

    def logits(self, x: Sequence[Any], attention: Sequence[Any]) -> list[Any]:
        """From what the heads have found."""
        w = self.weights
        x = [a + b for a, b in zip(linear(attention, w["wo"]), x)]
        hidden = [mgjit.relu(h) for h in linear(normed(x), w["fc1"])]
        x = [a + b for a, b in zip(linear(hidden, w["fc2"]), x)]
        return linear(x, w["lm_head"])

    def growing(self, letter: int, position: int, keys: list[Any], values: list[Any]) -> list[Any]:
        """The logits of the next letter; appends to keys and values."""
        x, q, k, v = self.vectors(letter, position)
        keys.append(k)
        values.append(v)
        found = []
        for h in range(0, WIDTH, SIZE):
            scores = [sum(q[h + j] * key[h + j] for j in range(SIZE)) / SIZE**0.5 for key in keys]
            shares = softmax(scores, self.highest(scores))
            found += [sum(share * value[h + j] for share, value in zip(shares, values)) for j in range(SIZE)]
        return self.logits(x, found)

    def placed(self, letter: int, position: int) -> list[Any]:
        """The same with keys and values in states: what lies behind the position counts for nothing."""
        x, q, k, v = self.vectors(letter, position)
        for j in range(WIDTH):
            self.keys[WIDTH * position + j] = k[j]
        for j in range(WIDTH):
            self.values[WIDTH * position + j] = v[j]
        found = []
        for h in range(0, WIDTH, SIZE):
            scores = []
            for t in range(POSITIONS):
                score = sum(q[h + j] * self.keys[WIDTH * t + h + j] for j in range(SIZE)) / SIZE**0.5
                scores.append(score if t <= position else -math.inf)
            shares = softmax(scores, self.highest(scores))
            found += [
                sum(share * self.values[WIDTH * t + h + j] for t, share in enumerate(shares)) for j in range(SIZE)
            ]
        return self.logits(x, found)

    def choice(self, logits: Sequence[Any], temperature: float) -> int:
        """A letter."""
        scaled = [x / temperature for x in logits]
        return random.choices(range(LETTERS), weights=softmax(scaled, self.highest(scaled)))[0]

    # ---- the steps --------------------------------------------------------------------------------------------

    def next_placed(self, letter: int, position: int, temperature: float) -> int:
        """The next letter."""
        return self.choice(self.placed(letter, position), temperature)

    def next_growing(self, letter: int, position: int, keys: list[Any], values: list[Any], temperature: float) -> int:
        """The next letter."""
        return self.choice(self.growing(letter, position, keys, values), temperature)

    def sample(self, temperature: float) -> list[int]:
        """All letters of a sample."""
        keys: list[Any] = []
        values: list[Any] = []
        letters = [0]
        for position in range(POSITIONS):
            letters.append(self.choice(self.growing(letters[-1], position, keys, values), temperature))
        return letters[1:]

    def loss(self, letters: Sequence[int]) -> Any:
        """The mean of the negative logarithms of the chances of the letters, each after those before it."""
        keys: list[Any] = []
        values: list[Any] = []
        total = 0.0
        for position, (letter, following) in enumerate(zip(letters, letters[1:])):
            logits = self.growing(letter, position, keys, values)
            chances = zip(softmax(logits, self.highest(logits)), mgjit.one_hot(following, LETTERS))
            total += mgjit.log(sum(chance * hot for chance, hot in chances))
        return -total / (len(letters) - 1)


def highest_of_floats(xs: Sequence[Any]) -> Any:
    """The largest."""
    return max(xs)


def highest_of_values(xs: Sequence[Any]) -> Any:
    """As of floats, without a gradient."""
    return max(x.data for x in xs)


# ---- mgjit ------------------------------------------------------------------------------------------------------


def by_calls(step: Callable[..., int]) -> list[int]:
    """A sample, one call a token."""
    letter, found = 0, []
    for position in range(POSITIONS):
        letter = step(letter, position, TEMPERATURE)
        found.append(letter)
    return found


def by_lists(step: Callable[..., int]) -> list[int]:
    """A sample, one call a token, with lists that grow."""
    letter, found = 0, []
    keys: list[Any] = []
    values: list[Any] = []
    for position in range(POSITIONS):
        letter = step(letter, position, keys, values, TEMPERATURE)
        found.append(letter)
    return found


def compiled(function: Any, dtype: str) -> Any:
    """The step that is frozen."""
    return mgjit.compile(dtype=dtype, warn_after=POSITIONS, background=False, verify="never")(function)


def ways_of_mgjit(weights: dict[str, Matrix], rows: int) -> dict[str, dict[str, tuple[Callable[[], Any], int]]]:
    """By way and name: a function, and how many tokens a call of it makes."""
    model = Model(weights, highest_of_floats)
    columns = [TEMPERATURE] * rows
    found: dict[str, dict[str, tuple[Callable[[], Any], int]]] = {"calls": {}, "lists": {}, "loop": {}}
    for dtype in ("float64", "float32"):
        own = Model(weights, highest_of_floats)  # states have one precision
        calls = mgjit.freeze(compiled(own.next_placed, dtype), 0, 0, TEMPERATURE)
        lists = mgjit.freeze(compiled(own.next_growing, dtype), 0, 0, [], [], TEMPERATURE)
        loop = mgjit.freeze(compiled(own.sample, dtype), TEMPERATURE)
        if dtype == "float64":
            for make in (partial(by_calls, calls), partial(by_lists, lists), partial(loop, TEMPERATURE)):
                compare(make, partial(model.sample, TEMPERATURE))
        found["calls"][f"calls, {dtype}"] = partial(by_calls, calls), POSITIONS
        found["lists"][f"lists, {dtype}"] = partial(by_lists, lists), POSITIONS
        found["loop"][f"loop, {dtype}"] = partial(loop.loop, columns), POSITIONS * rows
    found["plain"] = {"plain Python over floats": (partial(model.sample, TEMPERATURE), POSITIONS)}
    return found


def compare(one: Callable[[], Any], other: Callable[[], Any]) -> None:
    """Require the same samples for the same random numbers."""
    for seed in range(3):
        random.seed(seed)
        expected = other()
        random.seed(seed)
        found = one()
        if list(map(int, found)) != expected:
            raise SystemExit(f"samples differ: {found} instead of {expected}")


def ways_of_scores(weights: dict[str, Matrix], rows: int) -> dict[str, tuple[Callable[[], Any], int]]:
    """The loss of given letters: the training kernel's forward, and the frozen one."""
    parameters = {name: [[mgjit.Value(x) for x in row] for row in matrix] for name, matrix in weights.items()}
    model = Model(parameters, highest_of_values)
    flat = [p for matrix in parameters.values() for row in matrix for p in row]

    @mgjit.compile(background=False, verify="never")
    def train(letters: Sequence[int], rate: float) -> Any:
        loss = model.loss(letters)
        for p in flat:
            p.grad = 0.0
        loss.backward()
        for p in flat:
            p.data -= rate * p.grad
        return loss

    letters = [0, *(7 * k % LETTERS for k in range(1, POSITIONS + 1))]
    train(letters, 0.0)
    frozen = mgjit.freeze(train, letters, 0.0)
    if float(frozen(letters, 0.0)).hex() != float(train.forward(letters, 0.0)).hex():
        raise SystemExit("the frozen step and the forward phase of the training step differ")
    return {
        "scores: .forward of the training step": (lambda: train.forward(letters, 0.0), POSITIONS),
        "scores: frozen": (lambda: frozen(letters, 0.0), POSITIONS),
        "scores: frozen, .loop": (lambda: frozen.loop([letters] * rows, 0.0), POSITIONS * rows),
    }


# ---- others -----------------------------------------------------------------------------------------------------


def with_numpy(weights: dict[str, Matrix]) -> dict[str, tuple[Callable[[], Any], int]]:
    """One call a token, arrays for keys and values, in float64."""
    import numpy as np

    w = {name: np.array(matrix) for name, matrix in weights.items()}
    keys, values = (np.zeros((POSITIONS, HEADS, SIZE)) for _ in range(2))
    made = np.random.default_rng(1)

    def norm(x: Any) -> Any:
        return x * (x @ x / WIDTH + 1e-5) ** -0.5

    def logits(letter: int, position: int) -> Any:
        x = norm(w["wte"][letter] + w["wpe"][position])
        y = norm(x)
        keys[position], values[position] = (w["wk"] @ y).reshape(HEADS, SIZE), (w["wv"] @ y).reshape(HEADS, SIZE)
        scores = np.einsum("thj,hj->ht", keys[: position + 1], (w["wq"] @ y).reshape(HEADS, SIZE)) / SIZE**0.5
        powers = np.exp(scores - scores.max(1, keepdims=True))
        found = np.einsum("ht,thj->hj", powers / powers.sum(1, keepdims=True), values[: position + 1])
        x = w["wo"] @ found.ravel() + x
        x = w["fc2"] @ np.maximum(w["fc1"] @ norm(x), 0.0) + x
        return w["lm_head"] @ x

    def sample() -> None:
        letter = 0
        for position in range(POSITIONS):
            scaled = logits(letter, position) / TEMPERATURE
            shares = np.cumsum(np.exp(scaled - scaled.max()))
            letter = int(np.searchsorted(shares, made.random() * shares[-1]))

    require_close("numpy", lambda letter, position: logits(letter, position).tolist(), weights, 1e-9)
    return {"numpy, one call a token, float64": (sample, POSITIONS)}


def with_jax(weights: dict[str, Matrix]) -> dict[str, tuple[Callable[[], Any], int]]:
    """A jitted step a token, and a whole sample by `lax.scan`, in float32."""
    import jax
    import jax.numpy as jnp

    w = {name: jnp.array(matrix, jnp.float32) for name, matrix in weights.items()}

    def norm(x: Any) -> Any:
        return x * (x @ x / WIDTH + 1e-5) ** -0.5

    def logits(keys: Any, values: Any, letter: Any, position: Any) -> Any:
        x = norm(w["wte"][letter] + w["wpe"][position])
        y = norm(x)
        keys = keys.at[position].set((w["wk"] @ y).reshape(HEADS, SIZE))
        values = values.at[position].set((w["wv"] @ y).reshape(HEADS, SIZE))
        scores = jnp.einsum("thj,hj->ht", keys, (w["wq"] @ y).reshape(HEADS, SIZE)) / SIZE**0.5
        shares = jax.nn.softmax(jnp.where(jnp.arange(POSITIONS) <= position, scores, -jnp.inf), axis=1)
        x = w["wo"] @ jnp.einsum("ht,thj->hj", shares, values).ravel() + x
        x = w["fc2"] @ jax.nn.relu(w["fc1"] @ norm(x)) + x
        return keys, values, w["lm_head"] @ x

    def choice(keys: Any, values: Any, letter: Any, position: Any, seed: Any) -> Any:
        keys, values, found = logits(keys, values, letter, position)
        return keys, values, jax.random.categorical(seed, found / TEMPERATURE)

    empty = jnp.zeros((POSITIONS, HEADS, SIZE), jnp.float32)
    step, one = jax.jit(choice, donate_argnums=(0, 1)), jax.jit(logits)
    seeds = list(jax.random.split(jax.random.key(1), POSITIONS))

    def sample() -> None:
        keys, values, letter = empty + 0, empty + 0, 0
        for position in range(POSITIONS):
            keys, values, letter = step(keys, values, letter, position, seeds[position])
            letter = int(letter)

    @jax.jit
    def whole(seed: Any) -> Any:
        def body(carry: Any, at: Any) -> Any:
            keys, values, letter = choice(*carry, *at)
            return (keys, values, letter), letter

        start = (empty, empty, jnp.int32(0))
        return jax.lax.scan(body, start, (jnp.arange(POSITIONS), jax.random.split(seed, POSITIONS)))[1]

    cache = [empty, empty]

    def found(letter: int, position: int) -> list[float]:
        *cache[:], result = one(*cache, letter, position)
        return [float(x) for x in result]

    require_close("jax", found, weights, 1e-4)
    seed = jax.random.key(2)
    return {
        "jax, one jitted call a token, float32": (sample, POSITIONS),
        "jax, lax.scan over a sample, float32": (lambda: whole(seed).block_until_ready(), POSITIONS),
    }


def with_torch(weights: dict[str, Matrix]) -> dict[str, tuple[Callable[[], Any], int]]:
    """One call a token, in float32, without gradients, on one thread."""
    import torch

    torch.set_num_threads(1)
    w = {name: torch.tensor(matrix, dtype=torch.float32) for name, matrix in weights.items()}
    keys, values = (torch.zeros(POSITIONS, HEADS, SIZE) for _ in range(2))

    def norm(x: Any) -> Any:
        return x * (x @ x / WIDTH + 1e-5) ** -0.5

    def logits(letter: int, position: int) -> Any:
        x = norm(w["wte"][letter] + w["wpe"][position])
        y = norm(x)
        keys[position], values[position] = (w["wk"] @ y).view(HEADS, SIZE), (w["wv"] @ y).view(HEADS, SIZE)
        query = (w["wq"] @ y).view(HEADS, SIZE)
        scores = torch.einsum("thj,hj->ht", keys[: position + 1], query) / SIZE**0.5
        found = torch.einsum("ht,thj->hj", torch.softmax(scores, 1), values[: position + 1])
        x = w["wo"] @ found.reshape(WIDTH) + x
        x = w["fc2"] @ torch.relu(w["fc1"] @ norm(x)) + x
        return w["lm_head"] @ x

    def sample() -> None:
        letter = 0
        for position in range(POSITIONS):
            letter = int(torch.multinomial(torch.softmax(logits(letter, position) / TEMPERATURE, 0), 1))

    def without_gradients() -> None:
        with torch.inference_mode():
            sample()

    require_close("torch", lambda letter, position: logits(letter, position).tolist(), weights, 1e-4)
    return {"torch, one call a token, float32": (without_gradients, POSITIONS)}


def require_close(name: str, logits: Callable[[int, int], Sequence[float]], weights: Any, limit: float) -> None:
    """Require the logits of plain Python, up to roundings."""
    model = Model(weights, highest_of_floats)
    keys: list[Any] = []
    values: list[Any] = []
    for position, letter in enumerate((0, 5, 1, 26)):
        expected = model.growing(letter, position, keys, values)
        found = logits(letter, position)
        if max(abs(a - b) for a, b in zip(found, expected)) > limit:
            raise SystemExit(f"{name} has other logits")


PEERS = {"numpy": with_numpy, "jax": with_jax, "torch": with_torch}
WAYS = ("calls", "lists", "loop", "scores", "plain", *PEERS)


def seconds_of(call: Callable[[], Any], seconds: float) -> float:
    """Processor seconds of a call: the best of rounds that take so long together."""
    call()
    started = time.process_time()
    call()
    count = max(1, int(seconds / 10 / max(time.process_time() - started, 1e-9)))
    best = math.inf
    for _ in range(10):
        started = time.process_time()
        for _ in range(count):
            call()
        best = min(best, (time.process_time() - started) / count)
    return best


def main(words: Sequence[str] | None = None) -> int:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each line")
    parser.add_argument("--rows", type=int, default=2000, help="samples in a call of .loop")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    arguments = parser.parse_args(words)
    weights = random_weights()
    ours = ways_of_mgjit(weights, arguments.rows)
    for way in arguments.ways:
        try:
            if way == "scores":
                lines = ways_of_scores(weights, arguments.rows)
            else:
                lines = ours[way] if way in ours else PEERS[way](weights)
        except ImportError as reason:
            print(f"{way}: {reason}")
            continue
        for name, (call, tokens) in lines.items():
            taken = seconds_of(call, arguments.seconds) / tokens
            print(f"{name:45} {1 / taken:12,.0f} tokens/s {taken * 1e6:10.2f} us a token", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
