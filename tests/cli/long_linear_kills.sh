# A linear classifier of many texts is killed at random moments of reading, counting and the passes, and goes on: the weights
# have the bits of a run that nothing disturbed, on one thread and on two. $TEXTS and $KILLS choose other numbers.
. "$(dirname "$0")/support.sh"

texts=${TEXTS:-300000}
kills=${KILLS:-30}

# make_texts NUMBER FILE: two classes that some words tell apart
make_texts() {
  perl -e '
    srand(2);
    my @words = map { my $w = ""; $w .= chr(97 + int(rand(26))) for 0 .. 2 + rand(7); $w } 1 .. 20000;
    for (1 .. $ARGV[0]) {
      my $class = int(rand(2));
      print $class ? "on" : "off", "\t", join(" ", map { $words[int(20000 ** rand) - 1] . (rand() < 0.2 ? $class : "") } 1 .. 12), "\n";
    }' "$1" >"$2"
}

# set_command NAME THREADS: sets `command`; rows are made again in each pass
set_command() {
  command=("$capstan" train -q --config "$source/configs/classify.yaml" --set name="$1" "data.train=[train.tsv]"
    train.memory=1 threads="$2")
}

weights() {
  sha256sum <"runs/$1/checkpoints/step-1/model.safetensors"
}

case_kills() {
  make_texts "$texts" train.tsv
  set_command whole 2
  SECONDS=0
  "${command[@]}" >out 2>err
  local whole=$SECONDS killed=0 wait
  echo "$texts texts in $whole s"
  export CAPSTAN_WORK_SECONDS=${CAPSTAN_WORK_SECONDS:-$(awk "BEGIN { print $whole / 60 }")}
  SECONDS=0
  while [ "$killed" -lt "$kills" ]; do
    set_command killed $((1 + killed % 2))
    "${command[@]}" >out 2>err &
    local run=$!
    # Some while texts are read, which is done again each time; all together, longer than the whole run.
    wait=$(awk "BEGIN { srand($RANDOM); print $whole * (0.02 + 0.1 * rand()) }")
    sleep "$wait"
    if ! kill -9 $run 2>/dev/null; then  # it is finished
      wait $run
      break
    fi
    ! wait $run 2>/dev/null
    killed=$((killed + 1))
  done
  set_command killed 1
  "${command[@]}" >out 2>err
  echo "$killed kills, $SECONDS s in all"
  [ "$killed" -gt 3 ]
  [ "$(weights killed)" = "$(weights whole)" ]
  [ -z "$(find runs/killed -name .unfinished -o -name '*.tmp')" ]
}

run_cases
