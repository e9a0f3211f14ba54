#!/bin/bash
# Downloads a public data set, checks it, and unpacks it to where a configuration can read it:
#   scripts/get-data.sh enwik8|text8|ag_news|imdb|wikitext-2|listops [FOLDER]      FOLDER: datasets
# An interrupted download continues where it stopped. Files are downloaded to FOLDER/.download, compared with their checksums
# (scripts/get-data.table) and unpacked there; then FOLDER/NAME appears, complete, in one step.
# Without a network: CAPSTAN_DATA_MIRROR=file:///media/stick (or http://...) is searched for the same files, by name.
set -euo pipefail

table=$(dirname "$0")/get-data.table
names=$(sed -n 's/^\([^# ][^ ]*\) .*/\1/p' "$table" | uniq)

fail() {
  echo "get-data.sh: $*" >&2
  exit 1
}

name=${1:-} folder=${2:-datasets}
if [ -z "$name" ] || [ $# -gt 2 ] || ! grep -qx -- "$name" <<<"$names"; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  [ -z "$name" ] || echo "get-data.sh: unknown data set $name; known:" $names >&2
  exit 2
fi

# Prints how to train on the data set.
usage() {
  case $name in
    enwik8) echo "capstan train --config configs/enwik8.yaml --set data.train=[$folder/enwik8/enwik8]" ;;
    text8) echo "capstan train --config configs/enwik8.yaml --set name=text8 data.train=[$folder/text8/text8]" ;;
    ag_news)
      echo "capstan train --config configs/classify.yaml --set name=ag_news data.train=[$folder/ag_news/train.csv]" \
        "data.test=[$folder/ag_news/test.csv] 'data.text_columns=[\"2\", \"3\"]'"
      ;;
    imdb)
      echo "capstan train --config configs/classify.yaml --set name=imdb data.format=folders data.train=[$folder/imdb/train]" \
        "data.test=[$folder/imdb/test] data.classes=[neg,pos]"
      ;;
    wikitext-2)
      echo "capstan train --config configs/lm-words.yaml --set name=wikitext-2 data.train=[$folder/wikitext-2/wiki.train.tokens]" \
        "data.valid=[$folder/wikitext-2/wiki.valid.tokens] data.test=[$folder/wikitext-2/wiki.test.tokens]"
      ;;
    listops)
      echo "capstan train --config configs/listops-nyu.yaml --set data.train=[$folder/listops/train_d20s.tsv]" \
        "data.test=[$folder/listops/test_d20s.tsv]"
      ;;
  esac
}

# matches FILE CHECKSUM: the file exists and has this checksum
matches() {
  [ -f "$1" ] && "${2%%:*}sum" --check --status <<<"${2#*:}  $1"
}

# Reports why curl failed, from its exit code, and the remedy.
explain() { # CODE URL
  local why="curl failed with code $1"
  case $1 in
    6 | 7) why="the host cannot be reached; is there a network?" ;;
    22) why="the host does not have the file (any more)" ;;
    37) why="there is no such file" ;;
    18 | 28 | 52 | 55 | 56) why="the connection broke; the same command continues where it stopped" ;;
  esac
  cat >&2 <<TEXT
get-data.sh: $2: $why
If these hosts cannot be reached, download the files elsewhere,
$(sed -n "s/^$name .* /  /p" "$table")
put them into one folder, and run CAPSTAN_DATA_MIRROR=file:///that/folder scripts/get-data.sh $name
TEXT
  exit 1
}

# fetch URL FILE: appends to the file what is missing
fetch() {
  curl --fail --location --silent --show-error --connect-timeout 20 --speed-limit 1000 --speed-time 60 --continue-at - \
    --output "$2" "$1"
}

# load CHECKSUM URL: downloads the file to $download and checks it
load() {
  local file=$download/${2##*/} url=$2 code=0
  if [ -n "${CAPSTAN_DATA_MIRROR:-}" ]; then url=${CAPSTAN_DATA_MIRROR%/}/${2##*/}; fi
  if matches "$file" "$1" || matches "$file.part" "$1"; then
    mv -f "$file.part" "$file" 2>/dev/null || true
    return
  fi
  echo "$url"
  fetch "$url" "$file.part" || code=$?
  if [ -s "$file.part" ] && [[ $code -eq 22 || $code -eq 33 || $code -eq 36 ]]; then
    # The host has nothing more to send, or cannot start in the middle of a file: download it from the start.
    rm "$file.part"
    code=0
    fetch "$url" "$file.part" || code=$?
  fi
  if [ $code -ne 0 ]; then explain $code "$url"; fi
  if ! matches "$file.part" "$1"; then
    rm "$file.part"
    fail "$url: its ${1%%:*} is not ${1#*:}: it was damaged in transit, or the host changed it. The download was removed."
  fi
  mv "$file.part" "$file"
}

# unpack FILE: into $unpacked
unpack() {
  case $1 in
    *.zip) unzip -q -o "$1" -d "$unpacked" ;;
    *.tar.gz) tar -xzf "$1" -C "$unpacked" ;;
    *) ln -f "$1" "$unpacked/" ;;
  esac
}

for tool in curl unzip tar; do
  command -v $tool >/dev/null || fail "$tool is missing: install the package $tool"
done
if [ -e "$folder/$name" ]; then
  echo "$folder/$name exists already"
  usage
  exit 0
fi

download=$folder/.download/$name unpacked=$folder/.download/$name/unpacked
mkdir -p "$download"
# One process at a time: another one would write to the same file.
exec 9>"$download.lock"
flock --nonblock 9 || fail "$folder/$name is being downloaded by another process"
rm -rf "$unpacked"
mkdir "$unpacked"
files=()
while read -r _ checksum url; do
  load "$checksum" "$url"
  files+=("$download/${url##*/}")
done < <(grep "^$name " "$table")
for file in "${files[@]}"; do unpack "$file"; done
# An archive with a single folder: take the content of the folder.
inside=$unpacked
entries=("$unpacked"/*)
if [ ${#entries[@]} -eq 1 ] && [ -d "${entries[0]}" ]; then inside=${entries[0]}; fi
mv -T "$inside" "$folder/$name"
rm -rf "$download" "$download.lock"
rmdir --ignore-fail-on-non-empty "$folder/.download"
echo "$folder/$name is ready:"
usage
