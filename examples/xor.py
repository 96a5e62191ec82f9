"""Learn the smallest step that is worth compiling: XOR with a 2-4-1 network.

A network this small learns XOR from some initial weights and gets stuck from others: try other seeds.

Run: python examples/xor.py
"""

import mgjit
from mgjit import nn

POINTS = [((0.0, 0.0), 0.0), ((0.0, 1.0), 1.0), ((1.0, 0.0), 1.0), ((1.0, 1.0), 0.0)]

model = nn.MLP(2, [4, 1], seed=3)


@mgjit.compile
def train_step(x, y, lr):
    loss = (model(x) - y) ** 2
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= lr * p.grad
    return loss


for epoch in range(501):
    total = sum(train_step(x, y, 0.05) for x, y in POINTS)
    if epoch % 100 == 0:
        print(f"epoch {epoch:3}  loss {total:.6f}")

for x, y in POINTS:
    print(f"{x[0]:.0f} xor {x[1]:.0f} = {y:.0f}   network: {model(x).data:+.3f}")
