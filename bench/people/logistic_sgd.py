"""Logistic regression by stochastic gradient descent over rows with the label last."""
from math import exp
from random import seed, uniform


def predict(row, coefficients):
    yhat = coefficients[0]
    for i in range(len(row) - 1):
        yhat += coefficients[i + 1] * row[i]
    return 1.0 / (1.0 + exp(-yhat))


def coefficients_sgd(train, l_rate, n_epoch):
    coef = [0.0 for i in range(len(train[0]))]
    for epoch in range(n_epoch):
        sum_error = 0
        for row in train:
            yhat = predict(row, coef)
            error = row[-1] - yhat
            sum_error += error**2
            coef[0] = coef[0] + l_rate * error * yhat * (1.0 - yhat)
            for i in range(len(row) - 1):
                coef[i + 1] = coef[i + 1] + l_rate * error * yhat * (1.0 - yhat) * row[i]
        if epoch % 1000 == 0:
            print('>epoch=%d, lrate=%.3f, error=%.3f' % (epoch, l_rate, sum_error))
    return coef


seed(1)
dataset = []
for _ in range(250):
    row = [uniform(-1, 1) for _ in range(8)]
    dataset.append(row + [1 if row[0] - 2 * row[3] + row[5] > 0.1 else 0])
print(coefficients_sgd(dataset, 0.1, 11000))
