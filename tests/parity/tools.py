"""What every fixture is made with: numbers from streams keyed by name, gradients, and the file itself."""

import zlib
from pathlib import Path

import torch

import checks
import safetensors_file

FOLDER = Path(__file__).parent / "fixtures"
ADAMW = {"lr": 1e-2, "betas": (0.9, 0.999), "eps": 1e-8}
WEIGHT_DECAY = 0.1


def generator(name):
    """Every tensor draws from a stream of its own, so that adding one changes no other."""
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def normal(name, *shape, stddev=1.0, mean=0.0):
    """Doubles that are also floats: a float test that reads them computes the same function of the same numbers."""
    values = mean + stddev * torch.randn(*shape, generator=generator(name), dtype=torch.float64)
    return values.float().double()


def integers(name, high, *shape):
    return torch.randint(0, high, shape, generator=generator(name), dtype=torch.int32)


def prefixed(prefix, tensors):
    return {f"{prefix}.{name}": value for name, value in tensors.items()}


def with_gradients(params):
    return {name: value.clone().requires_grad_() for name, value in params.items()}


def gradients(scalar, leaves):
    """By name; zero for a leaf that the scalar does not depend on."""
    values = torch.autograd.grad(scalar, list(leaves.values()), allow_unused=True)
    return {name: torch.zeros_like(leaf) if value is None else value
            for (name, leaf), value in zip(leaves.items(), values)}


def save(name, tensors, metadata):
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    safetensors_file.save(path, tensors, metadata)
    stored, _ = safetensors_file.load(path)
    same = all(torch.equal(stored[key], value.detach()) for key, value in tensors.items())
    checks.require(same, f"{path} reads back wrongly")
    print(f"{path.name:44} {path.stat().st_size:8} bytes, {len(tensors)} tensors")
