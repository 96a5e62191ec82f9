# A neural network from scratch, object oriented: neurons know their weights, layers know their neurons.
import math
import random


class Neuron:
    def __init__(self, bias):
        self.bias = bias
        self.weights = []

    def calculate_output(self, inputs):
        self.inputs = inputs
        self.output = self.squash(self.calculate_total_net_input())
        return self.output

    def calculate_total_net_input(self):
        total = 0
        for i in range(len(self.inputs)):
            total += self.inputs[i] * self.weights[i]
        return total + self.bias

    def squash(self, x):
        return 1 / (1 + math.exp(-x))

    def error_derivative(self, target):
        return -(target - self.output) * self.output * (1 - self.output)


class NeuronLayer:
    def __init__(self, count, bias):
        self.bias = bias if bias else random.random()
        self.neurons = [Neuron(self.bias) for _ in range(count)]

    def feed_forward(self, inputs):
        outputs = []
        for neuron in self.neurons:
            outputs.append(neuron.calculate_output(inputs))
        return outputs


class NeuralNetwork:
    LEARNING_RATE = 0.5

    def __init__(self, num_inputs, num_hidden, num_outputs):
        self.num_inputs = num_inputs
        self.hidden_layer = NeuronLayer(num_hidden, 0.35)
        self.output_layer = NeuronLayer(num_outputs, 0.6)
        for neuron in self.hidden_layer.neurons:
            for _ in range(num_inputs):
                neuron.weights.append(random.random() - 0.5)
        for neuron in self.output_layer.neurons:
            for _ in range(num_hidden):
                neuron.weights.append(random.random() - 0.5)

    def feed_forward(self, inputs):
        return self.output_layer.feed_forward(self.hidden_layer.feed_forward(inputs))

    def train(self, training_inputs, training_outputs):
        self.feed_forward(training_inputs)
        out_errors = [0] * len(self.output_layer.neurons)
        for o in range(len(self.output_layer.neurons)):
            out_errors[o] = self.output_layer.neurons[o].error_derivative(training_outputs[o])
        hidden_errors = [0] * len(self.hidden_layer.neurons)
        for h in range(len(self.hidden_layer.neurons)):
            d = 0
            for o in range(len(self.output_layer.neurons)):
                d += out_errors[o] * self.output_layer.neurons[o].weights[h]
            out = self.hidden_layer.neurons[h].output
            hidden_errors[h] = d * out * (1 - out)
        for o in range(len(self.output_layer.neurons)):
            for w in range(len(self.output_layer.neurons[o].weights)):
                pd = out_errors[o] * self.output_layer.neurons[o].inputs[w]
                self.output_layer.neurons[o].weights[w] -= self.LEARNING_RATE * pd
        for h in range(len(self.hidden_layer.neurons)):
            for w in range(len(self.hidden_layer.neurons[h].weights)):
                pd = hidden_errors[h] * self.hidden_layer.neurons[h].inputs[w]
                self.hidden_layer.neurons[h].weights[w] -= self.LEARNING_RATE * pd

    def total_error(self, sets):
        total = 0
        for inputs, outputs in sets:
            self.feed_forward(inputs)
            for o in range(len(outputs)):
                total += 0.5 * (outputs[o] - self.output_layer.neurons[o].output) ** 2
        return total


random.seed(2)
training_sets = []
for n in range(16):
    bits = [(n >> k) & 1 for k in range(4)]
    training_sets.append([bits, [sum(bits) % 2, int(bits[0] and bits[3])]])

nn = NeuralNetwork(4, 8, 2)
for i in range(150000):
    inputs, outputs = random.choice(training_sets)
    nn.train(inputs, outputs)
    if i % 15000 == 0:
        print(i, round(nn.total_error(training_sets), 9))
print("final", round(nn.total_error(training_sets), 9))
