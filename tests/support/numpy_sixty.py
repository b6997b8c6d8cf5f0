"""Sixty small programs of NumPy, as users write them: name -> (function, arguments)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

_g = np.random.default_rng(0)
A, B = _g.standard_normal((40, 5)), _g.standard_normal((40, 5))
M, V = _g.standard_normal((5, 5)) + 5 * np.eye(5), _g.standard_normal(5)
N, P = np.arange(12).reshape(3, 4), np.arange(1, 13).reshape(3, 4)
F = A.astype(np.float32)
T = torch.from_numpy(A.copy())


def softmax(a):
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(a):
    return (a - a.mean(axis=-1, keepdims=True)) / np.sqrt(a.var(axis=-1, keepdims=True) + 1e-5)


def filled(a):
    b = a.copy()
    b[0] = 1.0
    b[1:, 2] = 0.5
    return b


def stencil(a):
    return (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]) / 5


def accumulate(a):
    total = np.zeros_like(a)
    for k in range(3):
        total += a * k
    return total


def newton(a):
    x = np.ones_like(a)
    for _ in range(4):
        x = 0.5 * (x + np.abs(a) / x)
    return x


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "the FAQ's": (lambda x, y: np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1)), (A, B)),
    "the FAQ's mean": (lambda x, y: np.mean(np.sum(x[:, :, None] * y[:, None, :], axis=(-2, -1))), (A, B)),
    "softmax": (softmax, (A,)),
    "layer norm": (layer_norm, (A,)),
    "standardised": (lambda a: (a - a.mean(axis=0)) / a.std(axis=0), (A,)),
    "sigmoid": (lambda a: 1 / (1 + np.exp(-a)), (A,)),
    "relu": (lambda a: np.maximum(a, 0), (A,)),
    "leaky relu": (lambda a: np.where(a > 0, a, 0.1 * a), (A,)),
    "gelu": (lambda a: 0.5 * a * (1 + np.tanh(0.79788 * (a + 0.044715 * a**2 * a))), (A,)),
    "distances": (lambda x, y: np.sqrt(np.sum((x[:, None] - y[None]) ** 2, axis=-1)), (A, B)),
    "cosine": (lambda x, y: np.sum(x * y, axis=1) / (np.sqrt((x * x).sum(1)) * np.sqrt((y * y).sum(1))), (A, B)),
    "matrix product": (lambda a, m: a @ m, (A, M)),
    "linear layer": (lambda a, m, v: np.maximum(a @ m + v, 0), (A, M, V)),
    "quadratic form": (lambda v, m: np.dot(v, np.dot(m, v)), (V, M)),
    "covariance": (lambda a: (a - a.mean(axis=0)).T @ (a - a.mean(axis=0)) / (a.shape[0] - 1), (A,)),
    "least squares": (lambda m, v: np.linalg.solve(m.T @ m, m.T @ v), (M, V)),
    "inverse": (lambda m: np.linalg.inv(m) @ m, (M,)),
    "determinant": (lambda m: np.linalg.det(m) * 2, (M,)),
    "norm": (lambda a: a / np.linalg.norm(a), (A,)),
    "einsum": (lambda a, m: np.einsum("ij,jk->ik", a, m), (A, M)),
    "outer": (lambda v: np.outer(v, v) - np.eye(5), (V,)),
    "trace": (lambda m: np.trace(m) + 1, (M,)),
    "upper part": (lambda m: np.triu(m, 1) + np.tril(m), (M,)),
    "sin and cos": (lambda a: np.sin(a) ** 2 + np.cos(a) ** 2, (A,)),
    "polynomial": (lambda a: 3 * a**2 - 2 * a + 1, (A,)),
    "logarithms": (lambda a: np.log1p(np.abs(a)) + np.log(np.abs(a) + 1), (A,)),
    "polar": (lambda x, y: np.hypot(x, y) + np.arctan2(y, x), (A, B)),
    "clipped": (lambda a: np.clip(a, -1, 1), (A,)),
    "signs": (lambda a: np.sign(a) * np.sqrt(np.abs(a)), (A,)),
    "rounded": (lambda a: np.floor(a) + np.ceil(a) + np.rint(a), (A,)),
    "mean squared error": (lambda x, y: np.mean((x - y) ** 2), (A, B)),
    "absolute error": (lambda x, y: np.abs(x - y).mean(), (A, B)),
    "largest": (lambda a: a.max() - a.min(), (A,)),
    "spread": (lambda a: np.ptp(a, axis=0), (A,)),
    "where the largest is": (lambda a: a.argmax(axis=1), (A,)),
    "any and all": (lambda a: (a > 0).any(axis=0) & (a < 9).all(axis=0), (A,)),
    "counted": (lambda a: np.count_nonzero(a > 0), (A,)),
    "running sum": (lambda a: np.cumsum(a, axis=0), (A,)),
    "differences": (lambda a: a[1:] - a[:-1], (A,)),
    "sorted": (lambda a: np.sort(a, axis=0), (A,)),
    "joined": (lambda x, y: np.concatenate([x, y], axis=1), (A, B)),
    "stacked": (lambda x, y: np.stack([x, y]).mean(axis=0), (A, B)),
    "above each other": (lambda x, y: np.vstack([x, y]) * 2, (A, B)),
    "reshaped": (lambda a: a.reshape(5, -1).sum(axis=1), (A,)),
    "transposed": (lambda a: a.T + 1, (A,)),
    "axes swapped": (lambda a: np.swapaxes(a[:, None, :], 0, 2).mean(), (A,)),
    "rows by a list": (lambda a: a[[0, 2, 4]] * 2, (A,)),
    "filled": (filled, (A,)),
    "stencil": (stencil, (A,)),
    "accumulated": (accumulate, (A,)),
    "newton": (newton, (A,)),
    "with a range": (lambda a: a * np.arange(5) + np.linspace(0, 1, 5), (A,)),
    "whole numbers": (lambda n, p: (n // p) * p + n % p, (N, P)),
    "sum of whole numbers": (lambda n: n.sum(axis=0) * n.mean(), (N,)),
    "promoted": (lambda n, f: n[0, 0] + f * 2, (N, F)),
    "another dtype": (lambda a: a.astype(np.float32) * np.float32(2), (A,)),
    "to a tensor": (lambda a: torch.from_numpy(np.tanh(a)) * 2, (A,)),
    "from a tensor": (lambda t: np.sin(t.numpy()) + np.asarray(t), (T,)),
    "by a mask": (lambda a: a[a > 0].sum(), (A,)),
    "reversed": (lambda a: a[::-1] + 1, (A,)),
}
