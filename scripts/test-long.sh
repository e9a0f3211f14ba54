#!/bin/bash
# What takes too long for every change; for larger changes and releases.
exec "$(dirname "$0")/test.sh" --long
