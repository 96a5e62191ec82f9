"""A perceptron: the class of every introduction, with fit and predict."""
import random

random.seed(6)


class Perceptron:
    def __init__(self, n, learning_rate=0.01):
        self.weights = [0.0] * n
        self.bias = 0.0
        self.learning_rate = learning_rate

    def predict(self, inputs):
        activation = self.bias
        for w, x in zip(self.weights, inputs):
            activation += w * x
        return 1 if activation >= 0.0 else 0

    def train(self, data, labels, epochs):
        for epoch in range(epochs):
            errors = 0
            for inputs, label in zip(data, labels):
                prediction = self.predict(inputs)
                update = self.learning_rate * (label - prediction)
                self.bias += update
                for i in range(len(self.weights)):
                    self.weights[i] += update * inputs[i]
                errors += int(update != 0.0)
            if epoch % 2000 == 0:
                print(f"epoch {epoch}: {errors} errors")


data = [[random.uniform(-1, 1) for _ in range(10)] for _ in range(200)]
labels = [1 if sum(x[:5]) + random.gauss(0, 0.5) > sum(x[5:]) else 0 for x in data]
model = Perceptron(10)
model.train(data, labels, 16000)
print(model.weights, model.bias)
