#!/bin/bash
# Prints the picture of the architecture, docs/pictures/architecture.svg: the folders and their rooms, from tests/arrows.txt, with
# what docs/README.md says of each folder. A room is above all rooms that it includes.
set -euo pipefail
cd "$(dirname "$0")/.."

awk '
# What docs/README.md says of a folder.
FILENAME ~ /README/ {
  if (match($0, /^\| `[a-z]+\/` \| /)) {
    split($0, cell, / *\| */)
    name = cell[2]; gsub(/[`\/]/, "", name)
    says[name] = cell[3]; gsub(/`/, "", says[name])
  }
  next
}
/^[a-z]/ {
  comment = ""
  if ((at = index($0, "#")) > 0) { comment = substr($0, at + 1); sub(/^ */, "", comment); $0 = substr($0, 1, at - 1) }
  room = $1; sub(/:$/, "", room)
  rooms[++count] = room
  top = folder_of(room)
  if (!(top in order)) { tops[++folders] = top; order[top] = folders }
  note[room] = comment
  node[room] = shown_as(room)
  if (!(node[room] in level)) level[node[room]] = 0
  for (i = 2; i <= NF; ++i)
    for (k = 1; k < count; ++k) {
      other = rooms[k]
      if (other != $i && index(other, $i "/") != 1) continue
      if (folder_of(other) != top) includes[top, folder_of(other)] = 1
      else if (node[other] != node[room] && level[node[room]] <= level[node[other]]) level[node[room]] = level[node[other]] + 1
    }
}
END {
  for (t = 1; t <= folders; ++t) place_rooms(tops[t])
  reduce()
  place_folders()
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " total_width + 2 " " total_height + 2 "\" role=\"img\">"
  print "<style>"
  print "  text { font: 13px system-ui, sans-serif; fill: #333 } .folder { font-weight: 600; font-size: 15px } .note { font-size: 12px; opacity: 0.75 }"
  print "  .band { fill: #888; fill-opacity: 0.07; stroke: #888; stroke-opacity: 0.5 }"
  print "  .room { fill: #2f6fbf; fill-opacity: 0.14; stroke: #2f6fbf; stroke-opacity: 0.6 } .arrow { stroke: #888; stroke-width: 2; marker-end: url(#head) }"
  print "  @media (prefers-color-scheme: dark) { text { fill: #ddd } }"
  print "</style>"
  print "<title>The folders of Capstan and their rooms; a room includes only rooms below it</title>"
  print "<defs><marker id=\"head\" markerWidth=\"8\" markerHeight=\"8\" refX=\"5\" refY=\"3\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"#888\"/></marker></defs>"
  for (t = 1; t <= folders; ++t) draw(tops[t])
  for (t = 1; t <= folders; ++t)
    for (u = 1; u <= folders; ++u)
      if (direct[tops[t], tops[u]]) draw_arrow(tops[t], tops[u])
  print "</svg>"
}
function folder_of(path) { sub(/\/.*/, "", path); return path }
# The kernels of a system are shown as part of it.
function shown_as(path) { if (path ~ /\/.*\/.*\/kernels$/) sub(/\/kernels$/, "", path); return path }
function label_of(path, top) { return path == top ? top : substr(path, length(top) + 2) }
function box_width(label) { return 7.2 * length(label) + 18 }
function escaped(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
# Rows of boxes, the rooms that include nothing of their folder at the bottom.
function place_rooms(top,    k, room, row, used, widest, title_width) {
  rows[top] = 0
  for (k = 1; k <= count; ++k) {
    room = rooms[k]
    if (folder_of(room) != top || node[room] != room) continue
    row = level[room]
    if (row + 1 > rows[top]) rows[top] = row + 1
    left_of[room] = used[row] + 0
    ++in_row[top, row]
    used[row] += box_width(label_of(room, top)) + 10
    if (used[row] > widest) widest = used[row]
  }
  title_width = 9 * length(top) + 6.6 * length(says[top]) + 30
  needed[top] = (widest > title_width ? widest : title_width) + 20
  height[top] = 32 + 30 * rows[top]
  if (rows[top] == 1 && level_single(top)) height[top] = 32
}
# A folder without rooms of its own.
function level_single(top,    k, rooms_in) {
  for (k = 1; k <= count; ++k) if (folder_of(rooms[k]) == top) ++rooms_in
  single[top] = rooms_in == 1 && (top in note)
  return single[top]
}
# Arrows that follow from others are left out; the floor of a folder is above all that it includes.
function reduce(    t, u, v, a, b) {
  for (t = 1; t <= folders; ++t) {
    a = tops[t]; floor[a] = 0
    for (u = 1; u <= folders; ++u) {
      b = tops[u]
      if (!((a, b) in includes)) continue
      if (floor[b] + 1 > floor[a]) floor[a] = floor[b] + 1
      direct[a, b] = 1
      for (v = 1; v <= folders; ++v)
        if (((a, tops[v]) in includes) && ((tops[v], b) in includes)) direct[a, b] = 0
    }
    if (floor[a] > highest) highest = floor[a]
  }
}
# Folders on a common floor stand side by side; one reaches up to the floor below the first that includes it.
function place_folders(    t, u, a, l, column, y) {
  for (t = 1; t <= folders; ++t) {
    a = tops[t]; ceiling[a] = highest
    for (u = 1; u <= folders; ++u)
      if (direct[tops[u], a] && floor[tops[u]] - 1 < ceiling[a]) ceiling[a] = floor[tops[u]] - 1
    column = 0
    for (l = floor[a]; l <= ceiling[a]; ++l) while (taken[l, column]) ++column
    for (l = floor[a]; l <= ceiling[a]; ++l) { taken[l, column] = 1; if (column + 1 > columns[l]) columns[l] = column + 1 }
    column_of[a] = column
  }
  for (t = 1; t <= folders; ++t) {
    a = tops[t]
    if (columns[floor[a]] > 1 && needed[a] > column_width[column_of[a]]) column_width[column_of[a]] = needed[a]
    if (columns[floor[a]] == 1 && needed[a] > total_width) total_width = needed[a]
    if (floor[a] == ceiling[a] && height[a] > floor_height[floor[a]]) floor_height[floor[a]] = height[a]
  }
  if (column_width[0] + column_width[1] + 20 > total_width) total_width = column_width[0] + column_width[1] + 20
  else column_width[1] = total_width - column_width[0] - 20
  for (t = 1; t <= folders; ++t) {  # a folder on several floors
    a = tops[t]
    y = -gap()
    for (l = floor[a]; l <= ceiling[a]; ++l) y += floor_height[l] + gap()
    if (height[a] > y) floor_height[ceiling[a]] += height[a] - y
  }
  for (l = highest; l >= 0; --l) { floor_y[l] = total_height; total_height += floor_height[l] + gap() }
  total_height -= gap()
  for (t = 1; t <= folders; ++t) {
    a = tops[t]
    x_of[a] = column_of[a] == 0 ? 0 : column_width[0] + 20
    width_of[a] = columns[floor[a]] > 1 ? column_width[column_of[a]] : total_width
    y_of[a] = floor_y[ceiling[a]]
    height[a] = floor_y[floor[a]] + floor_height[floor[a]] - y_of[a]
  }
}
function gap() { return 26 }
function draw(top,    k, room, label, x, y) {
  printf "<rect class=\"band\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" rx=\"6\"/>\n", x_of[top] + 1, y_of[top] + 1, width_of[top], height[top]
  printf "<text x=\"%g\" y=\"%g\"><tspan class=\"folder\">%s</tspan>  %s</text>\n", x_of[top] + 11, y_of[top] + 21, top, escaped(says[top])
  for (k = 1; k <= count && !single[top]; ++k) {
    room = rooms[k]
    if (folder_of(room) != top || node[room] != room) continue
    label = label_of(room, top)
    x = x_of[top] + 11 + left_of[room]
    y = y_of[top] + height[top] - 30 * (level[room] + 1) - 2
    printf "<g><title>%s</title><rect class=\"room\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"24\" rx=\"4\"/>", escaped(room ": " note[room]), x, y, box_width(label)
    printf "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text></g>\n", x + box_width(label) / 2, y + 16.5, label
    if (in_row[top, level[room]] == 1 && box_width(label) + 6.4 * length(note[room]) + 40 < width_of[top])
      printf "<text class=\"note\" x=\"%g\" y=\"%g\">%s</text>\n", x + box_width(label) + 10, y + 16.5, escaped(note[room])
  }
}
function draw_arrow(a, b,    left, right, x, y) {
  left = x_of[a] > x_of[b] ? x_of[a] : x_of[b]
  right = x_of[a] + width_of[a] < x_of[b] + width_of[b] ? x_of[a] + width_of[a] : x_of[b] + width_of[b]
  x = (left + right) / 2
  y = y_of[a] + height[a] + 3
  printf "<path class=\"arrow\" d=\"M%g %gV%g\"/>\n", x, y, y_of[b] - 5
}
' docs/README.md tests/arrows.txt
