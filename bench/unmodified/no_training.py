"""Nothing to compile: words are counted."""

import sys

counts = {}
text = ("the quick brown fox jumps over the lazy dog " * 2000).split()
for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 60):
    for word in text:
        counts[word] = counts.get(word, 0) + len(word) % 3
print(sorted(counts.items()))
