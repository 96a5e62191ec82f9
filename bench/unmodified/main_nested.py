"""main() with nested loops over epochs and batches of equal size, shuffled anew."""

import random
import sys

from engine import MLP, digest


def main(epochs):
    rng = random.Random(7)
    data = [([rng.gauss(0, 1) for _ in range(3)], rng.choice([-1, 1])) for _ in range(24)]
    model = MLP([3, 8, 1], 4)
    order = list(range(len(data)))
    for epoch in range(epochs):
        rng.shuffle(order)
        epoch_loss = 0.0
        for start in range(0, len(order), 6):
            batch = [data[k] for k in order[start : start + 6]]
            loss = sum((model(x)[0] * -y + 1.5) ** 2 for x, y in batch) * (1 / 6)
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.02 * p.grad
            epoch_loss += loss.data
        print(f"{epoch:3d} {epoch_loss:.17g}")
    return model


if __name__ == "__main__":
    print(digest(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60).parameters()))
