"""argparse, a log file and an input file."""

import argparse
import json
import os

from engine import MLP, SGD, digest

parser = argparse.ArgumentParser()
parser.add_argument("steps", type=int, nargs="?", default=300)
parser.add_argument("--rate", type=float, default=0.03)
parser.add_argument("--width", type=int, default=8)
parser.add_argument("--out", default="run.json")
args = parser.parse_args()


def main(args):
    with open("points.csv", "w") as file:
        file.writelines(f"{k / 9},{(k / 9) ** 2}\n" for k in range(10))
    with open("points.csv") as file:
        rows = [tuple(map(float, line.split(","))) for line in file]
    model = MLP([1, args.width, 1], 5)
    optimiser = SGD(model.parameters(), args.rate)
    with open("log.txt", "w") as log:
        for step in range(args.steps):
            loss = sum((model([x])[0] - y) ** 2 for x, y in rows)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 30 == 0:
                log.write(f"{step} {loss.data!r}\n")
    with open(args.out, "w") as file:
        json.dump([p.data for p in model.parameters()], file)
    print(loss.data, digest(model.parameters()), sorted(os.listdir()))


if __name__ == "__main__":
    main(args)
