"""Data in batches, runs in files, and images with labels to train on: what surrounds compiled steps."""

from .datasets import ConcatDataset, Dataset, Subset, TensorDataset, random_split
from .images import DATA, DatasetError, Images, Split, digits, mnist, read_idx, read_pair
from .loader import DataLoader, default_collate
from .progress import progress
from .runs import load, save

__all__ = [
    "DATA", "ConcatDataset", "DataLoader", "Dataset", "DatasetError", "Images", "Split", "Subset", "TensorDataset",
    "default_collate", "digits", "load", "mnist", "progress", "random_split", "read_idx", "read_pair", "save",
]  # fmt: skip
