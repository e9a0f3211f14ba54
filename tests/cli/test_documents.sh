# What documents take from the tree is up to date.
. "$(dirname "$0")/support.sh"

case_the_picture_of_the_architecture_is_that_of_the_table_of_arrows() {
  "$source/scripts/draw-architecture.sh" >drawn.svg
  if ! cmp drawn.svg "$source/docs/pictures/architecture.svg"; then
    echo "docs/pictures/architecture.svg is out of date: run scripts/update-docs.sh"
    return 1
  fi
  # Every room of the table is on it, kernels of a system as part of their system.
  local room
  for room in $(sed -nE 's/^([a-z_/]+):.*/\1/p' "$source/tests/arrows.txt" | sed -E 's#(/[^/]*/[^/]*)/kernels$#\1#'); do
    case $room in */*) says "<title>$room: " drawn.svg ;; esac
  done
}

run_cases
