"""Gaussian mixture fitted by expectation maximisation (1 dimension, 3 components)."""
from math import exp, log, pi, sqrt
from random import gauss, seed, choice

seed(8)
data = [gauss(*choice([(-4, 1), (0, 0.7), (5, 1.5)])) for _ in range(1500)]


def pdf(x, mu, sigma):
    return exp(-((x - mu) ** 2) / (2 * sigma**2)) / (sigma * sqrt(2 * pi))


def e_step(data, mus, sigmas, pis):
    resp = []
    loglik = 0
    for x in data:
        p = [w * pdf(x, m, s) for w, m, s in zip(pis, mus, sigmas)]
        total = sum(p)
        loglik += log(total)
        resp.append([v / total for v in p])
    return resp, loglik


def m_step(data, resp):
    k = len(resp[0])
    mus, sigmas, pis = [], [], []
    for j in range(k):
        nj = sum(r[j] for r in resp)
        mu = sum(r[j] * x for r, x in zip(resp, data)) / nj
        var = sum(r[j] * (x - mu) ** 2 for r, x in zip(resp, data)) / nj
        mus.append(mu)
        sigmas.append(sqrt(var))
        pis.append(nj / len(data))
    return mus, sigmas, pis


mus, sigmas, pis = [-1.0, 0.5, 1.0], [1.0, 1.0, 1.0], [1 / 3] * 3
for it in range(900):
    resp, ll = e_step(data, mus, sigmas, pis)
    mus, sigmas, pis = m_step(data, resp)
    if it % 100 == 0:
        print("iteration %d: log likelihood %.4f" % (it, ll))
for m, s, p in zip(mus, sigmas, pis):
    print("mu=%.4f sigma=%.4f pi=%.4f" % (m, s, p))
