#!/bin/bash
# One object from the kernels compiled for one level of x86-64:
#   join_kernels.sh NM LINKER OBJCOPY LEVEL OUTPUT OBJECT...
# Its functions are visible to others as NAME.LEVEL ("x86-64-v3" becomes "v3"); nothing else of it is. What the compiler
# left as weak symbols (inline functions, templates of the standard library) becomes local to the level: otherwise the
# linker would keep one copy for the whole program, and an AVX-512 one might be run by a CPU without it.
set -euo pipefail

nm=$1 linker=$2 objcopy=$3 level=${4##*-} output=$5
shift 5
joined=$output.joined

# Weak symbols can be made local only outside of their COMDAT groups; -d gives common symbols (names of OpenMP's critical
# sections) a place of their own.
"$linker" -r -d --force-group-allocation -o "$joined" "$@"
visible() { "$nm" --defined-only --extern-only --format=posix "$1" | awk "$2"; }
visible "$joined" '$2 == "T" { print $1 }' | sort >"$output.names"
if [ ! -s "$output.names" ]; then
  echo "join_kernels.sh: the objects for $output define no functions" >&2
  exit 1
fi
sed "s/.*/& &.$level/" "$output.names" >"$output.renamed"
sed "s/\$/.$level/" "$output.names" >"$output.visible"
"$objcopy" --redefine-syms="$output.renamed" --keep-global-symbols="$output.visible" "$joined" "$output"
rm "$joined"

if ! visible "$output" '{ print $1 }' | sort | cmp -s - <(sort "$output.visible"); then
  echo "join_kernels.sh: $output shows other symbols than the kernels" >&2
  exit 1
fi
