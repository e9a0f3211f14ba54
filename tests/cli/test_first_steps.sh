# The commands of README.md and docs/tutorial.md on small data: train, eval, generate, predict, inspect; and scripts/install-deps.sh.
. "$(dirname "$0")/support.sh"

small_language_model() {
  mkdir text
  cp "$source"/docs/*.md text/
  cp "$source"/core/array/shape.* "$source"/core/machine/pool.* text/
  exits 0 "$capstan" train --config "$source/configs/quickstart-lm.yaml" --set name=small data.train=[text] data.include=[] \
    data.sequence_length=64 data.overlap=16 model.width=32 model.layers.0.repeat=1 model.ngram_embedding.buckets=1000 train.steps=30 train.valid_every=15 train.log_every=5
}

case_language_model() {
  small_language_model
  says "all 30 steps are done" err
  says "ETA" err
  for file in config.yaml metrics.jsonl train.log checkpoints/run.json checkpoints/step-30; do test -e runs/small/$file; done

  exits 0 "$capstan" eval runs/small
  says "bits_per_byte" out

  exits 0 "$capstan" generate runs/small --prompt "The " --tokens 50 --temperature 0.8 --top-k 20 --seed 3
  test "$(head -c 4 out)" = "The "
  mv out first
  exits 0 "$capstan" generate runs/small --prompt "The " --tokens 50 --temperature 0.8 --top-k 20 --seed 3
  cmp out first

  exits 0 "$capstan" train --config "$source/configs/quickstart-lm.yaml" --set name=small data.train=[text] data.include=[] \
    data.sequence_length=64 data.overlap=16 model.width=32 model.layers.0.repeat=1 model.ngram_embedding.buckets=1000 train.steps=30 train.valid_every=15 train.log_every=5
  says "finished at step 30" err
  exits 0 "$capstan" inspect runs/small
  says "aft-local" out
}

case_classifier() {
  for i in 1 2 3 4 5 6 7 8 9 10; do
    printf 'good\ta fine and happy day %s\nbad\ta sad and gloomy night %s\n' "$i" "$i"
  done >train.tsv
  printf 'good\ta happy day\nbad\ta gloomy night\n' >test.tsv
  exits 0 "$capstan" train --config "$source/configs/ag-news.yaml" --set name=small data.train=train.tsv data.test=test.tsv \
    data.tokenizer.min_count=1 model.width=32 model.ngrams.buckets=1000 model.dropout=0 \
    train.epochs=60 train.batch_size=6 train.lr=5e-3 train.patience=0
  exits 0 "$capstan" eval runs/small --split test
  says "accuracy 1.0000" out

  printf 'a happy day\n\na sad night\n' | "$capstan" predict runs/small >out
  says "$(printf "label\t")" out
  test "$(sed -n 2p out | cut -f1)" = good
  test "$(sed -n 4p out | cut -f1)" = bad
  exits 0 "$capstan" predict runs/small test.tsv --format jsonl
  test "$(wc -l <out)" -eq 2
  says '"probabilities"' out
}

case_every_variant_trains() {
  for i in {1..60}; do printf '%s\t[MAX %s %s ]\n' $((i % 3)) $((i % 3)) 0; done >expressions.tsv
  for variant in full local simple conv; do
    mkdir -p text
    cp "$source"/docs/*.md text/
    exits 0 "$capstan" train --config "$source/configs/lm-aft-$variant.yaml" --set data.train=[text] model.width=16 \
      data.sequence_length=32 data.overlap=0 data.split=tail model.layers.0.repeat=1 train.steps=3 train.schedule.warmup_steps=1
    exits 0 "$capstan" train --config "$source/configs/classifier-aft-$variant.yaml" --set model.width=16 data.train=[expressions.tsv] \
      data.valid=[expressions.tsv] data.test=[] model.layers.0.repeat=1 train.epochs=1 train.schedule.warmup_steps=1
  done
}

case_install_deps_does_nothing_when_all_is_there() {
  command -v dpkg-query >/dev/null || skip "no Debian here"
  exits 0 "$source/scripts/install-deps.sh"
  test ! -s out
}

run_cases
