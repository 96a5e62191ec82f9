"""Other people's autograd classes: recognising them, and taking their `backward()` symbolically."""
