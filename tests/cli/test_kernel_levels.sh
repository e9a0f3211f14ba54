# Portable builds: every function that a header in a folder kernels/ declares is compiled for each level and dispatched. One
# that is defined elsewhere runs as compiled for the lowest level, which nothing else would show.
. "$(dirname "$0")/support.sh"

build=$(cd "$(dirname "$capstan")" && pwd)

# declared ROOM: the names of the functions in the room's kernels, without templates and inline functions
declared() {
  find "$source/$1" -path '*/kernels/*.hpp' -exec awk '
    FNR == 1 { previous = "" }
    /^[a-zA-Z].*[a-z0-9_]\(/ && !/^(inline|template|constexpr)/ && previous !~ /^template/ { sub(/\(.*/, ""); sub(/.* /, ""); print }
    { previous = $0 }
  ' {} + | sort -u
}

# dispatched ROOM LIBRARY: those that the library leads to the kernels of one level
dispatched() {
  c++filt <"$build/$1/kernels/$2/x86-64-v2.o.names" | sed -E 's/\(.*//; s/.*:://' | sort -u
}

case_every_declared_kernel_is_dispatched() {
  command -v c++filt >/dev/null || skip "no c++filt here"
  [ -d "$build/core/kernels" ] || skip "only portable builds have kernels for several levels"
  for room in core nn; do
    declared $room >declared
    test "$(wc -l <declared)" -gt 20
    for library in capstan_$room capstan_${room}_f64; do
      # The program needs the float library; the double one may not be built.
      [ -d "$build/$room/kernels/$library" ] || [ $library = capstan_$room ] || continue
      dispatched $room $library >dispatched
      diff declared dispatched || { echo "< declared by kernels/*.hpp of $room, > dispatched by $library"; return 1; }
    done
  done
}

run_cases
