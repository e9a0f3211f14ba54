"""Tables of hashed n-grams, of which a file has the rows that are not zero.

`config.tables` says for each of these tables NAME: rows, of the whole table; stored, those that the file has; bytes and form of
the tensor NAME_rows, which says which rows they are; and factor, by which the stored elements are multiplied.
"""

import torch
from torch import nn


def stored_rows(numbers, form):
    """The numbers of the stored rows, in their order. numbers: bytes.
        bits  row r is stored if bit r % 8 of byte r / 8 is 1
        gaps  a byte for each stored row: the rows between it and the stored one before it; 255 is 255 rows and goes on
    """
    if form == "bits":
        bit = 1 << torch.arange(8, dtype=torch.uint8, device=numbers.device)
        return (numbers[:, None] & bit).flatten().nonzero()[:, 0]
    ends = numbers < 255
    return ((numbers.long() + ends).cumsum(0) - 1)[ends]


class StoredTables:
    """For models: while from_pretrained reads a file, tables have the shape that they have there; then they are whole."""

    @classmethod
    def from_pretrained(cls, *args, **kwargs):
        loaded = super().from_pretrained(*args, as_stored=True, **kwargs)
        (loaded[0] if isinstance(loaded, tuple) else loaded).complete_tables()
        return loaded

    def tables(self):
        """(module, its name for the table, what the configuration says) of the tables that the model has."""
        for name, stored in self.config.tables.items():
            path, _, leaf = name.rpartition(".")
            if path in dict(self.named_modules()):
                yield self.get_submodule(path), leaf, stored

    def shrink_tables(self):
        for module, name, stored in self.tables():
            shape = getattr(module, name).shape
            setattr(module, name, nn.Parameter(torch.zeros(stored["stored"], *shape[1:])))
            module.register_buffer(name + "_rows", torch.zeros(stored["bytes"], dtype=torch.uint8))

    @torch.no_grad()
    def complete_tables(self):
        dtype = next(x.dtype for x in self.parameters() if x.is_floating_point() and x.dtype.itemsize > 1)
        for module, name, stored in self.tables():
            part, numbers = getattr(module, name), getattr(module, name + "_rows")
            whole = torch.zeros(stored["rows"], *part.shape[1:], dtype=dtype, device=part.device)
            values = part if stored["factor"] == 1 else part.float() * stored["factor"]
            whole[stored_rows(numbers, stored["form"])] = values.to(dtype)
            setattr(module, name, nn.Parameter(whole, requires_grad=part.requires_grad))
            delattr(module, name + "_rows")
        self.config.tables = {}  # what save_pretrained writes is whole
