# Multivariate linear regression, "from scratch": nested loops over lists inside of one function.
import random


def predict(X, theta):
    predictions = []
    for i in range(len(X)):
        total = theta[0]
        for j in range(len(X[i])):
            total += theta[j + 1] * X[i][j]
        predictions.append(total)
    return predictions


def compute_cost(X, y, theta):
    m = len(y)
    predictions = predict(X, theta)
    return sum((p - t) ** 2 for p, t in zip(predictions, y)) / (2 * m)


def gradient_descent(X, y, theta, alpha, iterations):
    m = len(y)
    cost_history = []
    for it in range(iterations):
        predictions = predict(X, theta)
        gradient = [0.0] * len(theta)
        for i in range(m):
            error = predictions[i] - y[i]
            gradient[0] += error
            for j in range(len(X[i])):
                gradient[j + 1] += error * X[i][j]
        for j in range(len(theta)):
            theta[j] = theta[j] - alpha * gradient[j] / m
        if it % 5000 == 0:
            cost = compute_cost(X, y, theta)
            cost_history.append(cost)
            print("Iteration %d | Cost %.8f" % (it, cost))
    return theta, cost_history


if __name__ == "__main__":
    random.seed(42)
    true = [4.0, 2.5, -1.0, 0.5, 3.0]
    X = [[random.random() for _ in range(4)] for _ in range(100)]
    y = [true[0] + sum(a * b for a, b in zip(true[1:], x)) + random.gauss(0, 0.05) for x in X]
    theta, history = gradient_descent(X, y, [0.0] * 5, 0.1, 60000)
    print(theta, len(history))
