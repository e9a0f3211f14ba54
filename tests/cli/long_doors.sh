# What docs/adding.md says it costs to add something, by doing it (additions.sh); then the programs concerned are built and used.
. "$(dirname "$0")/support.sh"
. "$(dirname "$0")/additions.sh"

# build TARGET...: in the copy; later cases go on with what earlier ones have built
build() {
  for tool in cmake ninja git; do command -v $tool >/dev/null || skip "no $tool here"; done
  cmake -S "$tree" -B "$tree/build/release" -G Ninja >log 2>&1 || { tail -n 30 log; return 1; }
  cmake --build "$tree/build/release" --target "$@" >log 2>&1 || { grep -B2 -A20 -m1 error log || tail -n 30 log; return 1; }
}

# trains FILE TYPE: the copy's program trains with the configuration, ends, and goes on from its checkpoint
trains() {
  exits 0 "$tree/build/release/capstan" config check --config "$1" --set train.steps=4
  exits 0 "$tree/build/release/capstan" train --config "$1" --set train.steps=4 train.keep_optimizer=true
  says "all 4 steps are done" err
  exits 0 "$tree/build/release/capstan" train --config "$1" --set train.steps=8
  says "step 4" err
  says "all 8 steps are done" err
}

# One case, because each addition is made to the tree that holds those before it, and all are built together.
case_additions_cost_what_the_document_says() {
  add_all
  build capstan test_core_f64 test_nn_f64 test_rooms
  exits 0 "$tree/build/release/bin/test_core_f64" -tc="gradients of element-wise*"
  exits 0 "$tree/build/release/bin/test_nn_f64" -tc="*every mixer of the variant*"
  exits 0 "$tree/build/release/bin/test_rooms"

  cat >added.yaml <<'YAML'
name: added
data: {type: parity, length: 12}
model: {type: text-classifier, width: 16, max_length: 12, loss: absolute-error, layers: [{mixer: {type: running-mean, expansion: 2}}]}
train: {batch_size: 8, lr: 1e-3, optimizer: {type: sign-sgd, momentum: 0.8}, monitor: error}
YAML
  trains added.yaml
  says "Error" err
  says '"error":' runs/added/metrics.jsonl
  exits 0 "$tree/build/release/capstan" eval runs/added
  says "odd" out
  exits 2 "$tree/build/release/capstan" config check --config added.yaml --set train.steps=8 --set data.lenght=3
  says "did you mean length" err

  uses_the_tokenizer_the_type_of_model_and_the_subcommand
  trains_and_writes_with_the_mixer
  uses_the_format
}

# The commands of docs/adding.md, with a text that is there.
trains_and_writes_with_the_mixer() {
  local program=$tree/build/release/capstan
  cat "$source"/docs/*.md >input.txt
  exits 0 "$program" train --config tinyshakespeare --set name=mean 'model.layers.0.mixer={type: running-mean, expansion: 2}' \
    data.train=[input.txt] train.steps=20
  says "all 20 steps are done" err
  exits 0 "$program" generate runs/mean --prompt 'ROMEO:' --tokens 20
  says "running-mean: each token that is written reads all others again" err
  exits 0 "$program" inspect runs/mean
  says "of running-mean, only products with parameters are counted" out
}

uses_the_format() {
  local program=$tree/build/release/capstan
  sed 's/^\([a-z]*\)\t/#\1 /' rows.tsv >rows.txt
  exits 0 "$program" train --config bag.yaml --set name=tagged 'data.train=[rows.txt]' data.format=tagged train.steps=4
  exits 0 "$program" predict runs/tagged rows.txt --errors
  says "of 80 texts" err
  "$program" predict runs/tagged <rows.txt >out 2>err
  says "is read as tagged" err
  printf '#first ab\nwithout\n' >bad.txt
  exits 1 "$program" data check --config bag.yaml --set 'data.train=[bad.txt]' data.format=tagged train.steps=4
  exits 2 "$program" train --config bag.yaml --set name=untagged data.format=taged
  says "tagged" err
}

uses_the_tokenizer_the_type_of_model_and_the_subcommand() {
  local program=$tree/build/release/capstan i
  for i in $(seq 40); do printf 'first\taba ab%d\nsecond\txyx xy%d\n' "$i" "$i"; done >rows.tsv
  cat >bag.yaml <<'YAML'
name: bag
data: {type: labelled, train: [rows.tsv], tokenizer: {type: ascii}}
model: {type: bag-of-tokens, width: 16}
train: {batch_size: 8, lr: 0.1}
YAML
  trains bag.yaml
  exits 0 "$program" eval runs/bag
  says "second" out
  printf 'ab\303\251\nxy\n' >texts.txt
  exits 0 "$program" predict runs/bag texts.txt
  sed 1d out | cut -f1 >labels
  printf 'first\nsecond\n' | cmp - labels
  exits 0 "$program" tokens runs/bag texts.txt
  printf '97 98 26\n120 121\n' | cmp - out
  exits 0 "$program" report runs/bag --output bag.html
  says '"class":"second"' bag.html
  exits 0 "$program" inspect runs/bag
  exits 0 "$program" train --config bag.yaml --set name=planned --set train.minutes=0.02
  says "plan for 0.02 min" err
  exits 2 "$program" train --config bag.yaml --set name=several train.steps=4 data.multi_label=true
  says "a bag-of-tokens predicts one class per text" err
  exits 1 "$program" embed runs/bag texts.txt
  says "a bag-of-tokens has no blocks" err
  "$program" --help | grep -q "  tokens "
}

run_cases
