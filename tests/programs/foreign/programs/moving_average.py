"""A moving average and a low-pass filter over a stream: the state of both lives between calls."""


class Smoother:
    def __init__(self, window, alpha):
        self.buffer = [0.0] * window
        self.alpha = alpha
        self.low = 0.0
        self.samples = 0
        self.peak = float("-inf")

    def __call__(self, chunk):
        out = []
        for x in chunk:
            self.buffer = self.buffer[1:] + [x]
            average = sum(self.buffer) / len(self.buffer)
            self.low += self.alpha * (average - self.low)
            self.peak = max(self.peak, abs(self.low))
            self.samples += 1
            out.append(self.low)
        return out


def make():
    smoother = Smoother(8, 0.2)
    calls = [([((17 * k + 31 * t) % 23) / 7.0 - 1.5 for t in range(40)],) for k in range(5)]
    return smoother, calls, lambda: (smoother.buffer, smoother.low, smoother.peak, smoother.samples)
