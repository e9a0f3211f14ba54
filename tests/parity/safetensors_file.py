"""Writes and reads safetensors files: 8 bytes of header length, a JSON header, then the raw tensors (little endian)."""

import json
import struct

import numpy as np
import torch

DTYPE_NAMES = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32", torch.bool: "BOOL"}
NUMPY_DTYPES = {"F64": "<f8", "F32": "<f4", "I32": "<i4", "BOOL": "?"}


def as_text(value):
    return str(value).lower() if isinstance(value, bool) else str(value)


def save(path, tensors, metadata):
    """Tensors by name (wider types first, so that every one is aligned) and a dictionary of strings."""
    header = {"__metadata__": {key: as_text(value) for key, value in metadata.items()}}
    blocks, offset = [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        block = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(block)]}
        blocks.append(block)
        offset += len(block)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))


def load(path):
    """The inverse of save(): (tensors, metadata)."""
    with open(path, "rb") as file:
        content = file.read()
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        array = np.frombuffer(content[begin:end], dtype=NUMPY_DTYPES[entry["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    return tensors, metadata
