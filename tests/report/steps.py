"""Steps that the tests of reports look at."""

import mgjit
from mgjit import nn

SECRET = 0.123456789  # a weight that no report may show
FACTOR = 0.987654321  # a number that is no data, but that is not in the text of the step either


def network(**options):
    """A small step, called three times, and its arguments."""
    model = nn.MLP(64, [32, 3])
    for p in model.parameters():
        p.data = SECRET
    options.setdefault("background", False)

    @mgjit.compile(**options)
    def train(x, label, rate):
        scores = model(x)
        loss = sum((s - t) ** 4 for s, t in zip(scores, mgjit.one_hot(label, 3)))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        return loss * FACTOR

    arguments = [SECRET] * 64, 1, 0.001
    for _ in range(3):
        train(*arguments)
    return train, arguments, model
