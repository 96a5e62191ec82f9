"""Baum-Welch training of a hidden Markov model of two coins and a die."""
import random

random.seed(15)


def forward(obs, A, B, pi):
    N, T = len(pi), len(obs)
    alpha = [[0.0] * N for _ in range(T)]
    scale = [0.0] * T
    for i in range(N):
        alpha[0][i] = pi[i] * B[i][obs[0]]
    scale[0] = sum(alpha[0])
    alpha[0] = [v / scale[0] for v in alpha[0]]
    for t in range(1, T):
        for j in range(N):
            s = 0.0
            for i in range(N):
                s += alpha[t - 1][i] * A[i][j]
            alpha[t][j] = s * B[j][obs[t]]
        scale[t] = sum(alpha[t])
        alpha[t] = [v / scale[t] for v in alpha[t]]
    return alpha, scale


def backward(obs, A, B, scale):
    N, T = len(A), len(obs)
    beta = [[0.0] * N for _ in range(T)]
    beta[T - 1] = [1.0] * N
    for t in range(T - 2, -1, -1):
        for i in range(N):
            s = 0.0
            for j in range(N):
                s += A[i][j] * B[j][obs[t + 1]] * beta[t + 1][j]
            beta[t][i] = s / scale[t + 1]
    return beta


def reestimate(obs, A, B, pi):
    N, M, T = len(A), len(B[0]), len(obs)
    alpha, scale = forward(obs, A, B, pi)
    beta = backward(obs, A, B, scale)
    gamma = [[alpha[t][i] * beta[t][i] for i in range(N)] for t in range(T)]
    newA = [[0.0] * N for _ in range(N)]
    newB = [[0.0] * M for _ in range(N)]
    for i in range(N):
        denom = sum(gamma[t][i] for t in range(T - 1))
        for j in range(N):
            num = 0.0
            for t in range(T - 1):
                num += alpha[t][i] * A[i][j] * B[j][obs[t + 1]] * beta[t + 1][j] / scale[t + 1]
            newA[i][j] = num / denom
        total = denom + gamma[T - 1][i]
        for k in range(M):
            newB[i][k] = sum(gamma[t][i] for t in range(T) if obs[t] == k) / total
    return newA, newB, gamma[0][:], scale


obs = []
state = 0
for _ in range(500):
    obs.append(random.choices(range(4), [[7, 1, 1, 1], [1, 2, 3, 4], [1, 6, 1, 2]][state])[0])
    if random.random() < 0.1:
        state = (state + 1) % 3

A = [[0.6, 0.2, 0.2], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6]]
B = [[0.4, 0.2, 0.2, 0.2], [0.2, 0.2, 0.3, 0.3], [0.2, 0.4, 0.2, 0.2]]
pi = [0.5, 0.25, 0.25]
import math
for iteration in range(1000):
    A, B, pi, scale = reestimate(obs, A, B, pi)
    if iteration % 100 == 0:
        print(iteration, "%.6f" % sum(math.log(s) for s in scale))
print([[round(x, 4) for x in row] for row in A])
