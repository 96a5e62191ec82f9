"""k-means by hand, restarted many times."""
import math
import random

random.seed(8)
points = [(random.gauss(cx, 0.7), random.gauss(cy, 0.7)) for cx, cy in ((0, 0), (3, 1), (1, 4), (5, 5)) for _ in range(80)]


def distance(a, b):
    return math.sqrt((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2)


def kmeans(points, k, iterations):
    centroids = random.sample(points, k)
    for _ in range(iterations):
        clusters = [[] for _ in range(k)]
        for p in points:
            distances = [distance(p, c) for c in centroids]
            clusters[distances.index(min(distances))].append(p)
        for i, cluster in enumerate(clusters):
            if cluster:
                centroids[i] = (sum(p[0] for p in cluster) / len(cluster), sum(p[1] for p in cluster) / len(cluster))
    return centroids, sum(min(distance(p, c) for c in centroids) for p in points)


best = None
for restart in range(700):
    centroids, cost = kmeans(points, 4, 12)
    if best is None or cost < best[1]:
        best = centroids, cost
        print(restart, cost)
print(best)
