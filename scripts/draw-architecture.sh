#!/bin/bash
# Prints the picture of the architecture, docs/pictures/architecture.svg: a band for each folder, which includes only those below it, with
# its rooms from tests/arrows.txt and what docs/README.md says of it.
set -euo pipefail
cd "$(dirname "$0")/.."

awk '
FILENAME ~ /README/ {  # what docs/README.md says of a folder
  if (match($0, /^\| `[a-z]+\/` \| /)) {
    split($0, cell, / *\| */)
    name = cell[2]; gsub(/[`\/]/, "", name)
    says[name] = cell[3]; gsub(/`/, "", says[name])
  }
  next
}
/^[a-z]/ {
  room = $1; sub(/:$/, "", room)
  note = index($0, "#") > 0 ? substr($0, index($0, "#") + 2) : ""
  if (room ~ /\/.*\/.*\/kernels$/) next  # the kernels of a system are part of it
  top = room; sub(/\/.*/, "", top)
  if (!(top in rooms)) tops[++folders] = top
  rooms[top] = rooms[top] room "\t" note "\n"
}
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
# A band at height y with boxes in rows; returns the height of the next one.
function band(top, y,    lines, cell, count, i, x, row, label, wide, boxes) {
  count = split(rooms[top], lines, "\n") - 1
  x = 12; row = 0
  for (i = 1; i <= count && (count > 1 || lines[1] ~ /\//); ++i) {
    split(lines[i], cell, "\t")
    label = cell[1] == top ? top : substr(cell[1], length(top) + 2)
    wide = 7.2 * length(label) + 18
    if (x + wide > 790) { x = 12; ++row }
    boxes = boxes sprintf("<g><title>%s</title><rect class=\"room\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"24\" rx=\"4\"/>" \
      "<text x=\"%g\" y=\"%g\">%s</text></g>\n", escaped(cell[1] ": " cell[2]), x, y + 32 + 30 * row, wide, x + 9, y + 48 + 30 * row, label)
    x += wide + 8
  }
  height = boxes == "" ? 32 : 66 + 30 * row
  printf "<rect class=\"band\" x=\"1\" y=\"%g\" width=\"798\" height=\"%g\" rx=\"6\"/>\n", y, height
  printf "<text x=\"12\" y=\"%g\"><tspan class=\"folder\">%s</tspan>  %s</text>\n%s", y + 21, top, escaped(says[top]), boxes
  return y + height + 8
}
END {
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 700\" role=\"img\">"
  print "<style>"
  print "  text { font: 13px system-ui, sans-serif; fill: #333 } .folder { font-weight: 600; font-size: 15px }"
  print "  .band { fill: #888; fill-opacity: 0.07; stroke: #888; stroke-opacity: 0.5 }"
  print "  .room { fill: #2f6fbf; fill-opacity: 0.14; stroke: #2f6fbf; stroke-opacity: 0.6 }"
  print "  @media (prefers-color-scheme: dark) { text { fill: #ddd } }"
  print "</style>"
  print "<title>The folders of Capstan and their rooms; a folder includes only folders below it</title>"
  y = 1
  for (i = folders; i >= 1; --i) y = band(tops[i], y)
  print "</svg>"
}
' docs/README.md tests/arrows.txt
