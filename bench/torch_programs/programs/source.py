"""The data of the programs, as plain lists: names, digits of 8 x 8 pixels, and sentences with tags."""

import random

from mgjit.data import digits as _digits

_LINES = """ada alan anita annie barbara blaise brian carl charles claude dana dennis donald dorothy edith emmy frances
george grace guido hedy ivan jean john joan ken kurt larry leslie linus lynn margaret marie mary niklaus noam peter
radia robin rosa shafi sophie stephen susan tim tony agnes albert alice amelia andrew angela arthur astrid beatrice
bella benjamin bruno camille caroline cecilia clara daniel david diana edgar eleanor elias elisa emil emma ernest
esther eva felix flora frederick gabriel gertrude gustav hannah harold helen henry hugo ida ingrid irene isaac
isabel jacob jasper julia julian karl katharina laura leon leonard lilian louis lucy magnus marcel martha martin
matilda max maya michael mina nathan nina nora oliver oscar otto paula philip rebecca robert rosalind ruth samuel
sarah sebastian simon sofia stella theodor thomas valentin vera victor viola walter william"""
#: Names, in an order of no meaning.
names = _LINES.split()
random.Random(42).shuffle(names)

_found = _digits()
#: Rows of 64 pixels from 0.0 to 1.0, and which digit each of them shows.
images = [[pixel / _found.scale for pixel in row] for row in _found.train.images]
labels = list(_found.train.labels)

#: Sentences, with a tag for each word: determiner, noun, verb.
sentences = [
    ("the dog ate the apple".split(), ["DET", "NN", "V", "DET", "NN"]),
    ("everybody read that book".split(), ["NN", "V", "DET", "NN"]),
    ("the child saw a bird in the garden".split(), ["DET", "NN", "V", "DET", "NN", "P", "DET", "NN"]),
    ("a cat sleeps".split(), ["DET", "NN", "V"]),
    ("that bird sings in a tree".split(), ["DET", "NN", "V", "P", "DET", "NN"]),
    ("everybody saw the cat".split(), ["NN", "V", "DET", "NN"]),
]
