# The manual page and the completions: they hold every command and every option that --help shows, and Bash completes with them.
. "$(dirname "$0")/support.sh"

# help_of COMMAND...: its --help, with what stands in lists one below the other
help_of() { "$capstan" "$@" --help; }
commands_of() { help_of "$@" | sed -n '/^Subcommands:/,/^[^ S]/s/^  \([a-z][a-z0-9-]*\) .*/\1/p'; }
options_of() { help_of "$@" | grep -oE '^  (-[a-z],)?--?[a-z][a-z0-9-]*' | tr -d ' ' | tr , '\n'; }

# Every command line that names a command, one per line, the program itself first.
all_commands() {
  echo "${*:-}"
  local command
  for command in $(commands_of "$@"); do all_commands "$@" "$command"; done
}

# completes WORD...: what Bash offers for the last word, one per line
completes() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _capstan
  printf '%s\n' "${COMPREPLY[@]}"
}

# For Bash's own completion alone; here nothing is being completed.
compopt() { :; }

# offers WORD LINE...: is the word among what Bash offers for the line?
offers() {
  local word=$1
  shift
  completes "$@" >offered
  grep -qxF -- "$word" offered && return
  echo "expected \"$word\" for: $*; offered:"
  cat offered
  return 1
}

case_every_command_and_option_is_completed_by_bash() {
  . <("$capstan" completion bash)
  test "$(all_commands | wc -l)" -ge 13
  all_commands | while read -ra line; do
    for command in $(commands_of "${line[@]}"); do offers "$command" capstan "${line[@]}" ""; done
    for option in $(options_of "${line[@]}"); do offers "$option" capstan "${line[@]}" -; done
    options_of "${line[@]}" | sort >expected
    sort offered | diff expected -
  done
}

case_every_command_and_option_is_in_the_manual() {
  "$capstan" man | sed 's/\\-/-/g; s/\\f[BIR]//g' >page
  says ".TH CAPSTAN 1" page
  all_commands | while read -ra line; do
    # From the heading of this command to the next one.
    if [ ${#line[@]} -gt 0 ]; then
      sed -n "/^\.SS capstan ${line[*]}\$/,/^\.S[SH] /p" page >section
    else
      sed -n '/^\.SH OPTIONS/,/^\.SH COMMANDS/p' page >section
    fi
    for option in $(options_of "${line[@]}"); do
      grep -qE -- "^([^ ]*, )?$option( |,|\$)" section || { echo "$option is not in the section of: ${line[*]}"; return 1; }
    done
  done
}

case_the_manual_is_a_manual() {
  command -v man >/dev/null || skip "no man here"
  "$capstan" man >capstan.1
  MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l capstan.1 >text 2>warnings
  test ! -s warnings
  says "capstan - train, compare and serve" text
  says "capstan predict [OPTIONS] RUN [FILE]" text
  says "--repetition-penalty" text
  says "75     interrupted" text
}

case_values_are_completed() {
  . <("$capstan" completion bash)
  mkdir -p runs/one
  touch runs/one/config.yaml "a file.yaml" other.txt
  test "$(completes capstan tra)" = train
  test "$(completes capstan config '' | tr '\n' ' ')" = "print check explain table "
  offers "a file.yaml" capstan train --config a
  offers "a file.yaml" capstan train --config other.txt ""
  offers runs/one capstan eval runs/
  offers runs/one/config.yaml capstan inspect runs/one/
  if offers other.txt capstan eval "" >/dev/null; then return 1; fi
  # After a value of its own an option has nothing more to say, and the argument's turn has come.
  offers runs capstan generate --tokens 5 ""
  offers runs capstan generate --no-slide ""
}

case_keys_are_completed() {
  . <("$capstan" completion bash)
  offers train.lr= capstan train --config a.yaml --set train.l
  offers model.layers.0.mixer.window= capstan train --config a.yaml --set train.lr = 1 model.layers.0.mixer.w
  offers data.tokenizer= capstan config check -c a.yaml -s data.tok
  test -z "$(completes capstan train --set train.lr =)"
  test -z "$(completes capstan train --set train.lr = 1)"
  # Each key is one that --set takes: unknown ones are reported as such.
  printf 'name: a\ndata: {type: text, train: [a]}\nmodel: {type: language-model, layers: [{mixer: flash}]}\n' >a.yaml
  for key in $(completes capstan train --set train.); do
    "$capstan" config check --config a.yaml --set "${key}@" >out 2>&1 || true
    if grep -q "unknown key" out; then
      echo "$key is no key"
      return 1
    fi
  done
}

case_an_unknown_shell_is_refused() {
  exits 2 "$capstan" completion tcsh
  says "tcsh" err
  exits 2 "$capstan" completion
}

case_the_version() {
  exits 0 "$capstan" --version
  grep -qE '^capstan [0-9]+\.[0-9]+\.[0-9]+$' out
}

run_cases
