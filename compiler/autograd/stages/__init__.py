"""A backward in stages: cut where DistributedDataParallel sends gradients, so that sending overlaps with the rest."""
