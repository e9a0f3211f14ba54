"""Makes the fixtures beside this file that the C++ tests are compared with. See README.md.

Run: /path/to/python-with-torch tests/parity/make_fixtures.py
"""

import torch

import attention_op
import checks
import elementary
import models
import published_models
import systems


def main():
    torch.set_num_threads(1)
    checks.check_formulas()
    checks.check_rotary()
    for part in (systems, attention_op, elementary, models, published_models):
        part.make()


if __name__ == "__main__":
    main()
