"""Makes the fixtures beside this file that the C++ tests are compared with. See README.md.

Run: /path/to/python-with-torch tests/parity/make_fixtures.py
"""

import torch

import checks
from systems import (aft, attention, elementary, fastformer, flash, gau, public_gated, public_models, public_modules,
                     whole_models)


def main():
    torch.set_num_threads(1)
    checks.check_formulas()
    checks.check_rotary()
    checks.check_cancellation_case()
    for part in (aft, whole_models, elementary, attention, fastformer, flash, gau, public_gated, public_models,
                 public_modules):
        part.make()


if __name__ == "__main__":
    main()
