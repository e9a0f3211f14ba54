# cmake --install, and the programs of examples/ built against the installed package in folders of their own, and run.
. "$(dirname "$0")/support.sh"

build=$(cd "$(dirname "$capstan")" && pwd)
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

installed() {
  for tool in cmake ninja; do command -v $tool >/dev/null || skip "no $tool here"; done
  if [ ! -e "$prefix/bin" ]; then cmake --install "$build" --prefix "$prefix" >"$prefix/log"; fi
}

# build_here SOURCES FOLDER
build_here() {
  # GCC 12 raises the last two inside its AVX-512 intrinsics.
  local launcher= strict="-Wall -Wextra -Wshadow -Werror -Wno-uninitialized -Wno-maybe-uninitialized"
  if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_FLAGS="$strict" $launcher >log 2>&1 &&
    CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 cmake --build "$2" >>log 2>&1 || { tail -n 30 log; return 1; }
}

# example NAME: builds it here, in the folder `NAME`
example() {
  installed
  # Those in additions/ are sources that become part of the tree.
  if grep -rn --exclude-dir=additions 'include "apps/' "$source/examples"; then return 1; fi
  cp -r "$source/examples/$1" sources # clean: nothing of the checkout is beside it
  build_here sources "$1"
}

case_everything_is_in_its_place() {
  installed
  for file in bin/capstan share/capstan/configs/quickstart-lm.yaml share/doc/capstan/README.md share/doc/capstan/docs/library.md include/capstan/core/array/array.hpp \
    include/capstan/nn/systems/aft/mixer.hpp; do
    test -e "$prefix/$file" || { echo "$file is missing"; return 1; }
  done
  test -z "$(find "$prefix/include" -name '*.cpp' -o -name 'simd.hpp')"
  exits 0 "$prefix/bin/capstan" --version
  # Nothing says where the checkout or the build folder were.
  if grep -rl -e "$build" -e "$source" "$prefix/lib" --include='*.cmake'; then return 1; fi
}

# As after scripts/quickstart.sh: nothing but the program is built.
case_the_program_alone() {
  mkdir alone
  local alone=$PWD/alone
  (cd "$build" && cp -r --parents $(find . -name cmake_install.cmake) $(find . -maxdepth 1 -name '*.so') capstan generated "$alone")
  find alone -name 'cmake_install*' -exec sed -i "s#$build/#$alone/#g" {} +
  exits 0 cmake --install alone --prefix "$PWD/here"
  says "libcapstan_core.a is not built" out
  test ! -e here/include
  exits 0 here/bin/capstan config check --config enwik8 # found without the sources
}

# Whatever a user includes has all that it needs with it.
case_no_header_needs_one_that_stayed_behind() {
  installed
  cd "$prefix/include/capstan"
  grep -rhoE '^#include "[^"]+"' . | sort -u | sed 's/.*"\(.*\)"/\1/' | while read -r header; do
    test -e "$header" || { echo "$header is included but not installed"; return 1; }
  done
}

case_new_op() {
  example new-op
  exits 0 new-op/check_softplus
  says "softplus:       largest difference" out
  says "wrong_softplus: noticed" out
}

case_new_mixer() {
  example new-mixer
  cat "$source"/docs/*.md >text.txt
  exits 0 new-mixer/train_mixer sources/running-mean.yaml
  says "The " out
  says "all 60 steps are done" err
  # It has learnt something: bytes at random would cost ln 256 = 5.5.
  loss=$(sed -n 's/.*best validation loss \([0-9.]*\) .*/\1/p' err | tail -n 1)
  test "$(echo "$loss" | cut -d. -f1)" -lt 4
  # Only forward() is written: it decodes by reading again, and says so once. A state of its own gives the same text.
  test "$(grep -c "running-mean: each token that is written reads all others again" err)" -eq 1
  mv out slow
  exits 0 new-mixer/train_mixer_fast sources/running-mean.yaml name=fast
  cmp slow out
  if grep "reads all others again" err; then return 1; fi
  # Its option is read, saved and refused like any other key.
  grep -A 1 "type: running-mean" runs/running-mean/config.yaml | grep -q "expansion: 2"
  exits 1 new-mixer/train_mixer sources/running-mean.yaml model.layers.1.mixer.expansoin=3
  says "did you mean expansion?" err
  # A program without the mixer says which it has.
  exits 2 "$prefix/bin/capstan" inspect runs/running-mean
  says 'model.layers.1.mixer.type: expected one of (aft-local, ' err
  says 'got "running-mean"' err
}

# docs/library.md: with capstan::apps, the whole command line knows the mixer.
case_a_capstan_with_one_more_mixer() {
  installed
  cp -r "$source/examples/new-mixer" own
  cat >own/main.cpp <<'EOF'
#include "apps/commands/commands.hpp"
#include "nn/systems/register_mixer.hpp"
#include "running_mean.hpp"
int main(int argc, char** argv) {
  capstan::register_mixer<capstan::RunningMeanConfig>();
  return capstan::run_command_line(argc, argv);
}
EOF
  sed -i 's/capstan::run)/capstan::apps)/' own/CMakeLists.txt
  build_here own program
  cat "$source"/docs/*.md >text.txt
  exits 0 program/train_mixer train --config own/running-mean.yaml --set train.steps=2
  exits 0 program/train_mixer generate runs/running-mean --prompt "The " --tokens 20 --temperature 0
  exits 0 program/train_mixer inspect runs/running-mean
  says "running-mean (expansion 2)" out
  says "of running-mean, only products with parameters are counted" out
  exits 0 program/train_mixer config print --config own/running-mean.yaml --set model.layers.1.mixer.expansion=3
  says "expansion: 3" out
}

case_train_lm() {
  example train-lm
  test "$(wc -l <sources/main.cpp)" -le 45
  cat "$source"/docs/*.md >text.txt
  exits 0 train-lm/train_lm text.txt train.steps=20 model.width=32
  says "held-out text: " out
  says "The " out
  says "all 20 steps are done" err
  exits 1 train-lm/train_lm none.txt
  says "data.train.0" err
}

case_score_text() {
  example score-text
  cat "$source"/docs/*.md >text.txt
  exits 0 "$capstan" train --config "$source/configs/quickstart-lm.yaml" --set name=lm data.train=[text.txt] data.include=[] data.split=tail \
    data.sequence_length=64 data.overlap=16 model.width=32 model.layers.0.repeat=1 model.ngram_embedding.buckets=1000 train.steps=20
  printf 'The gradient of a weight.\n\nqzjx vvkw\n' | score-text/score_text runs/lm >out
  test "$(wc -l <out)" -eq 2
  # Words of its own text cost it less than letters at random.
  test "$(sed -n '1s/ .*//p' out | tr -d .)" -lt "$(sed -n '2s/ .*//p' out | tr -d .)"

  for i in 1 2 3 4 5 6 7 8 9 10; do printf 'good\ta happy day %s\nbad\ta gloomy night %s\n' "$i" "$i"; done >train.tsv
  exits 0 "$capstan" train --config "$source/configs/ag-news.yaml" --set name=labels data.train=train.tsv data.test=train.tsv \
    data.tokenizer.min_count=1 model.width=32 model.ngrams.buckets=1000 model.dropout=0 \
    train.epochs=60 train.batch_size=6 train.lr=5e-3 train.patience=0
  echo "a happy day" | score-text/score_text runs/labels >out
  "$capstan" predict runs/labels <<<"a happy day" | tail -n 1 | cut -f2,3 >expected
  sed 's/[a-z]* \([0-9.]*\)\t[a-z]* \([0-9.]*\)\t.*/\1\t\2/' out | diff expected -
  exits 1 score-text/score_text runs/none
  says "there is no such folder" err
}

# A package that was built with -march=native is refused where that means something else.
case_another_instruction_set_is_refused() {
  installed
  config=$(find "$prefix" -name capstan-config.cmake)
  grep -q 'CAPSTAN_INSTRUCTION_SET "__' "$config" || skip "a portable build is for all machines"
  cp -r "$prefix" elsewhere
  sed -i 's/CAPSTAN_INSTRUCTION_SET "__AVX/CAPSTAN_INSTRUCTION_SET "__OTHER__ __AVX/' "$(find elsewhere -name capstan-config.cmake)"
  exits 1 cmake -S "$source/examples/new-op" -B build -G Ninja -DCMAKE_PREFIX_PATH="$PWD/elsewhere"
  says "built with -march=native for another instruction set" err
}

case_a_debian_package() {
  [ -e "$build/CPackConfig.cmake" ] || skip "only portable builds make packages"
  for tool in cpack dpkg-deb dpkg-shlibdeps; do command -v $tool >/dev/null || skip "no $tool here"; done
  exits 0 cpack -G DEB --config "$build/CPackConfig.cmake" -B "$PWD/package"
  dpkg-deb --info package/capstan_*.deb >info
  says "Version: $("$capstan" --version | cut -d' ' -f2)" info
  for library in libopenblas0-openmp libgomp1 libyaml-cpp libfmt; do says "$library" info; done
  dpkg-deb --extract package/capstan_*.deb root
  exits 0 root/usr/bin/capstan --version
  for file in man/man1/capstan.1.gz bash-completion/completions/capstan capstan/configs/enwik8.yaml doc/capstan/copyright; do
    test -e "root/usr/share/$file" || { echo "$file is missing"; return 1; }
  done
  test -z "$(find root \( -name '*.a' -o -name '*.hpp' \))" # the libraries are no part of it
}

run_cases
