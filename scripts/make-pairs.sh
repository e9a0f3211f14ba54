#!/bin/bash
# Makes pairs for configs/pairs.yaml: tasks on words whose answers are known.
#   reverse b d a        ->  a d b
#   sort nine two five   ->  two five nine
#   forty seven plus nine  ->  fifty six
# Usage: scripts/make-pairs.sh FOLDER [TRAIN [TEST]]     writes FOLDER/train.tsv and FOLDER/test.tsv, which share no source
set -euo pipefail
folder=${1:?usage: scripts/make-pairs.sh FOLDER [TRAIN [TEST]]}
train=${2:-60000} test=${3:-1000}
mkdir -p "$folder"
awk -v train="$train" -v test="$test" -v folder="$folder" '
  function draw(n) { return int(rand() * n) }
  function in_words(n) {
    if (n >= 100) return "one hundred" (n > 100 ? " " in_words(n - 100) : "")
    if (n < 20) return small[n]
    return tens[int(n / 10)] (n % 10 > 0 ? " " small[n % 10] : "")
  }
  function reverse(   i, n) {
    n = 2 + draw(6); source = "reverse"; target = ""
    for (i = 0; i < n; ++i) {
      letter = substr("abcdefghijklmnop", 1 + draw(16), 1)
      source = source " " letter
      target = letter (i > 0 ? " " target : "")
    }
  }
  function sort(   i, n, digits) {
    n = 2 + draw(5); source = "sort"; target = ""
    for (i = 0; i < n; ++i) { digit = draw(10); ++digits[digit]; source = source " " small[digit] }
    for (digit = 0; digit < 10; ++digit)
      for (i = 0; i < digits[digit]; ++i) target = target (target == "" ? "" : " ") small[digit]
  }
  function arithmetic(   a, b, minus) {
    a = draw(100); b = draw(100); minus = draw(2)
    if (minus && b > a) { i = a; a = b; b = i }
    source = in_words(a) (minus ? " minus " : " plus ") in_words(b)
    target = in_words(minus ? a - b : a + b)
  }
  BEGIN {
    srand(1)
    split("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen " \
          "eighteen nineteen", words, " ")
    small[0] = "zero"
    for (i in words) small[i] = words[i]
    split("ten twenty thirty forty fifty sixty seventy eighty ninety", tens, " ")
    for (made = 0; made < train + test && tries < 100 * (train + test); ++tries) {
      kind = draw(3)
      if (kind == 0) reverse(); else if (kind == 1) sort(); else arithmetic()
      # A source belongs to one file, chosen when it first comes up; the test file has it once.
      if (!(source in home)) home[source] = in_test < test && draw(20) == 0 ? "test" : "train"
      else if (home[source] == "test") continue
      if (home[source] == "test") ++in_test
      else if (made - in_test >= train) continue
      print source "\t" target > (folder "/" home[source] ".tsv")
      ++made
    }
  }'
echo "$folder: $(wc -l < "$folder/train.tsv") training pairs, $(wc -l < "$folder/test.tsv") test pairs"
