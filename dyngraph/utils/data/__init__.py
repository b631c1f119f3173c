"""PyTorch's `torch.utils.data`: datasets, samplers, a loader; and a prefetcher for devices."""

from dyngraph.utils.data.collation import (
    default_collate as default_collate,
    default_convert as default_convert,
)
from dyngraph.utils.data.datasets import (
    ChainDataset as ChainDataset,
    ConcatDataset as ConcatDataset,
    Dataset as Dataset,
    IterableDataset as IterableDataset,
    StackDataset as StackDataset,
    Subset as Subset,
    TensorDataset as TensorDataset,
    random_split as random_split,
)
from dyngraph.utils.data.loader import DataLoader as DataLoader
from dyngraph.utils.data.prefetch import Prefetcher as Prefetcher, prefetch as prefetch
from dyngraph.utils.data.samplers import (
    BatchSampler as BatchSampler,
    RandomSampler as RandomSampler,
    Sampler as Sampler,
    SequentialSampler as SequentialSampler,
    SubsetRandomSampler as SubsetRandomSampler,
    WeightedRandomSampler as WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "Prefetcher",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "prefetch",
    "random_split",
]
