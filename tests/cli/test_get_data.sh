# scripts/get-data.sh on small files of the same forms: from a folder, from a server that breaks off, and everything that must
# not leave half a data set.
. "$(dirname "$0")/support.sh"

# A copy of the script with a table of its own; the files lie in `files`.
prepare() {
  for tool in curl unzip flock; do command -v $tool >/dev/null || skip "no $tool here"; done
  mkdir scripts files
  cp "$source/scripts/get-data.sh" scripts/
  seq 1 20000 >files/train.csv
  seq 5 >files/test.csv
  mkdir -p aclImdb/train/pos aclImdb/test/neg
  echo good >aclImdb/train/pos/0_9.txt
  echo bad >aclImdb/test/neg/0_2.txt
  tar -czf files/aclImdb_v1.tar.gz aclImdb
  rm -r aclImdb
  {
    echo "# a comment"
    for file in train.csv test.csv; do echo "ag_news $(sum files/$file) https://nowhere.invalid/x/$file"; done
    echo "imdb md5:$(md5sum <files/aclImdb_v1.tar.gz | cut -d' ' -f1) https://nowhere.invalid/aclImdb_v1.tar.gz"
  } >scripts/get-data.table
  export CAPSTAN_DATA_MIRROR=file://$PWD/files
}

sum() { echo "sha256:$(sha256sum <"$1" | cut -d' ' -f1)"; }

# serve CUT: from now on files come from a server on this machine
serve() {
  command -v perl >/dev/null || skip "no perl for the server here"
  perl "$source/tests/cli/serve_files.pl" files "$1" port &
  server=$!
  trap 'kill $server' EXIT
  for _ in $(seq 100); do
    if [ -e port ]; then break; fi
    sleep 0.1
  done
  export CAPSTAN_DATA_MIRROR=http://127.0.0.1:$(cat port)
}

complete() {
  cmp files/train.csv datasets/ag_news/train.csv
  cmp files/test.csv datasets/ag_news/test.csv
  test ! -e datasets/.download
}

case_files_from_a_folder() {
  prepare
  exits 0 scripts/get-data.sh ag_news
  complete
  says "capstan train --config configs/classify.yaml" out
  exits 0 scripts/get-data.sh ag_news
  says "exists already" out
  exits 0 scripts/get-data.sh ag_news elsewhere
  cmp files/train.csv elsewhere/ag_news/train.csv
}

case_an_archive_is_unpacked() {
  prepare
  exits 0 scripts/get-data.sh imdb
  test "$(cat datasets/imdb/train/pos/0_9.txt)" = good
  test "$(cat datasets/imdb/test/neg/0_2.txt)" = bad
}

case_a_zip_is_unpacked() {
  prepare
  command -v zip >/dev/null || skip "no zip here"
  echo text >enwik8
  zip -q files/enwik8.zip enwik8
  echo "enwik8 $(sum files/enwik8.zip) https://nowhere.invalid/enwik8.zip" >>scripts/get-data.table
  exits 0 scripts/get-data.sh enwik8
  test "$(cat datasets/enwik8/enwik8)" = text
}

case_a_broken_connection_is_taken_up_again() {
  prepare
  serve 5000
  exits 1 scripts/get-data.sh ag_news
  says "continues where it stopped" err
  test ! -e datasets/ag_news
  test "$(stat -c %s datasets/.download/ag_news/train.csv.part)" -eq 5000
  cmp -n 5000 files/train.csv datasets/.download/ag_news/train.csv.part
  exits 0 scripts/get-data.sh ag_news
  complete
  test "$(cat port.log)" = "$(printf 'train.csv 0\ntrain.csv 5000\ntest.csv 0')"
}

case_a_whole_part_is_taken_as_it_is() {
  prepare
  serve 0
  mkdir -p datasets/.download/ag_news
  cp files/train.csv datasets/.download/ag_news/train.csv.part
  exits 0 scripts/get-data.sh ag_news
  complete
  test "$(cat port.log)" = "test.csv 0"
}

case_a_part_that_does_not_belong_is_replaced() {
  prepare
  serve 0
  mkdir -p datasets/.download/ag_news
  cat files/train.csv files/train.csv >datasets/.download/ag_news/train.csv.part # longer than the file: 416
  exits 0 scripts/get-data.sh ag_news
  complete
}

case_a_wrong_checksum_leaves_nothing() {
  prepare
  echo changed >>files/test.csv
  exits 1 scripts/get-data.sh ag_news
  says "test.csv: its sha256 is not" err
  test ! -e datasets/ag_news
  test ! -e datasets/.download/ag_news/test.csv
  test ! -e datasets/.download/ag_news/test.csv.part
  seq 5 >files/test.csv
  exits 0 scripts/get-data.sh ag_news
  complete
}

case_no_network_is_explained() {
  prepare
  unset CAPSTAN_DATA_MIRROR
  exits 1 env http_proxy= https_proxy= HTTPS_PROXY= HTTP_PROXY= all_proxy= ALL_PROXY= scripts/get-data.sh ag_news
  says "the host cannot be reached" err
  says "https://nowhere.invalid/x/test.csv" err
  says "CAPSTAN_DATA_MIRROR=file:///that/folder" err
  test ! -e datasets/ag_news
}

case_a_file_that_is_not_there() {
  prepare
  rm files/test.csv
  exits 1 scripts/get-data.sh ag_news
  says "there is no such file" err
  serve 0
  exits 1 scripts/get-data.sh ag_news
  says "the host does not have the file" err
  test ! -e datasets/ag_news
}

case_two_at_once() {
  prepare
  mkdir -p datasets/.download
  flock datasets/.download/ag_news.lock sh -c "exec env - PATH=$PATH scripts/get-data.sh ag_news" >out 2>err </dev/null && return 1
  says "by another process" err
}

case_unknown_names() {
  prepare
  exits 2 scripts/get-data.sh
  says "scripts/get-data.sh enwik8|text8" err
  exits 2 scripts/get-data.sh mnist
  says "unknown data set mnist; known: ag_news imdb" err
}

# What the script says at its end is valid: the table names every data set, and every command a configuration that is accepted.
case_the_commands_are_right() {
  cd "$source"
  for name in enwik8 text8 ag_news imdb wikitext-2 listops; do
    grep -q "^$name  *\(sha256\|md5\):[0-9a-f]*  *http" scripts/get-data.table
    mkdir -p "$OLDPWD/datasets/$name"
    scripts/get-data.sh $name "$OLDPWD/datasets" | tail -n 1 >"$OLDPWD/command"
    sed -i "s,^capstan train,$capstan config check," "$OLDPWD/command"
    bash "$OLDPWD/command"
  done
}

# AG News itself, where its test file is at hand.
case_the_real_test_file_of_ag_news() {
  real=$source/../shared/data/ag_news/test_original.csv.gz
  [ -e "$real" ] || skip "no $real"
  zcat "$real" >test.csv
  echo "$(sed -n 's/^ag_news *sha256:\([0-9a-f]*\) .*test.csv$/\1/p' "$source/scripts/get-data.table")  test.csv" | sha256sum --check --status
}

run_cases
