#!/bin/bash
# The source that leads calls of the kernels to those of one level:
#   dispatch_kernels.sh OUTPUT LEVEL_OBJECT...
# from the names that join_kernels.sh left beside each object, lowest level first. Each kernel is one jump through a slot;
# the slots hold the lowest level until core/machine/kernel_levels fills them, before main.
set -euo pipefail

output=$1
shift
for object; do
  if ! cmp -s "$1.names" "$object.names"; then
    echo "dispatch_kernels.sh: $1 and $object do not hold the same kernels" >&2
    exit 1
  fi
done
names=$1.names

table() { # NAME SUFFIX
  printf '.balign 8\n%s:\n' "$1"
  sed "s/.*/.quad &.$2/" "$names"
}
suffixes=()
for object; do suffixes+=("$(basename "$object" .o | sed 's/.*-//')"); done

{
  echo "// Made by cmake/dispatch_kernels.sh."
  echo '#include "core/machine/kernel_levels.hpp"'
  echo 'asm(R"('
  echo .text
  awk '{ printf ".globl %s\n.type %s, @function\n%s: jmp *capstan_kernel_slots+%d(%%rip)\n.size %s, .-%s\n",
                $1, $1, $1, 8 * (NR - 1), $1, $1 }' "$names"
  echo '.section .data.rel.local, "aw"'
  table capstan_kernel_slots "${suffixes[0]}"
  echo '.section .data.rel.ro.local, "aw"'
  for suffix in "${suffixes[@]}"; do table "capstan_kernels_$suffix" "$suffix"; done
  echo '.text'
  echo ')");'
  echo 'namespace {'
  echo '__attribute__((visibility("hidden"))) extern capstan::KernelAddress slots[] asm("capstan_kernel_slots");'
  for suffix in "${suffixes[@]}"; do
    echo "__attribute__((visibility(\"hidden\"))) extern const capstan::KernelAddress $suffix[] asm(\"capstan_kernels_$suffix\");"
  done
  printf 'const capstan::KernelTable table(slots, %d, {' "$(wc -l <"$names")"
  (IFS=,; printf '%s' "${suffixes[*]}")
  echo '});'
  echo '}'
} >"$output"
