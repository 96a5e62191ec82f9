"""Multiple linear regression with L2 penalty, trained with mini batch gradient descent."""
import random


def make_data(n, seed):
    rng = random.Random(seed)
    data, target = [], []
    for _ in range(n):
        rooms = rng.uniform(1, 6)
        size = rng.uniform(20, 200)
        age = rng.uniform(0, 80)
        dist = rng.uniform(0, 30)
        floor = rng.randint(0, 12)
        price = 40 * rooms + 2.1 * size - 0.6 * age - 3 * dist + floor + rng.gauss(0, 10)
        data.append([rooms, size, age, dist, float(floor)])
        target.append(price)
    return data, target


def standardize(data):
    cols = list(zip(*data))
    means = [sum(c) / len(c) for c in cols]
    stds = [(sum((v - m) ** 2 for v in c) / len(c)) ** 0.5 for c, m in zip(cols, means)]
    return [[(v - m) / s for v, m, s in zip(row, means, stds)] for row in data]


def predict(row, weights, bias):
    total = bias
    for value, weight in zip(row, weights):
        total += value * weight
    return total


def gradients(batch_x, batch_y, weights, bias, l2):
    dw = [0.0 for _ in weights]
    db = 0.0
    for row, y in zip(batch_x, batch_y):
        error = predict(row, weights, bias) - y
        for j, value in enumerate(row):
            dw[j] += 2 * error * value / len(batch_x)
        db += 2 * error / len(batch_x)
    dw = [g + 2 * l2 * w for g, w in zip(dw, weights)]
    return dw, db


def rmse(data, target, weights, bias):
    return (sum((predict(r, weights, bias) - t) ** 2 for r, t in zip(data, target)) / len(data)) ** 0.5


def main():
    data, target = make_data(2000, 3)
    data = standardize(data)
    weights, bias = [0.0] * len(data[0]), 0.0
    batch_size = 32
    order = list(range(len(data)))
    rng = random.Random(5)
    for epoch in range(1, 641):
        rng.shuffle(order)
        for start in range(0, len(order), batch_size):
            batch = order[start:start + batch_size]
            batch_x = [data[i] for i in batch]
            batch_y = [target[i] for i in batch]
            dw, db = gradients(batch_x, batch_y, weights, bias, 1e-3)
            weights = [w - 0.01 * g for w, g in zip(weights, dw)]
            bias = bias - 0.01 * db
        if epoch % 80 == 0:
            print("epoch", epoch, "rmse", round(rmse(data, target, weights, bias), 4))
    print("weights", [round(w, 3) for w in weights], "bias", round(bias, 3))


if __name__ == "__main__":
    main()
