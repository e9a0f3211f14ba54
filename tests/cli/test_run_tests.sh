# scripts/test.sh --run on build folders made up for the purpose: the sum, what was skipped, and everything that must not pass
# for success; and which rooms scripts/test.sh --fast takes for changed.
. "$(dirname "$0")/support.sh"

# add NAME COMMAND: a test of the folder build; the command finds its file of counts in $counts
add() {
  mkdir -p build
  printf 'add_test(%s "/bin/sh" "-c" [=[counts=%s/build/test-counts/%s; %s]=])\n' "$1" "$PWD" "$1" "$2" >>build/CTestTestfile.cmake
}

run() { exits "$1" "$source/scripts/test.sh" --run "$PWD/build"; }

case_counts_are_summed() {
  add first 'echo 3 0 0 >$counts'
  add second 'echo 2 0 1 >$counts; echo "reads a disk: no disk here" >>$counts'
  run 0
  test "$(tail -n 1 out)" = "5 passed, 0 failed, 1 skipped"
}

case_skipped_cases_are_named_in_front_of_the_closing_line() {
  add first 'printf "3 0 1\nreads a: b: not here\n" >$counts'
  add second 'printf "1 0 2\nplays: no sound\nshows: no screen\n" >$counts'
  run 0
  tail -n 6 out >end
  diff end - <<TEXT
skipped in first:
  reads a: b: not here
skipped in second:
  plays: no sound
  shows: no screen
4 passed, 0 failed, 3 skipped
TEXT
}

case_a_skipped_case_without_a_reason_fails() {
  add first 'printf "3 0 2\nreads: not here\n" >$counts'
  run 1
  says "first: skipped 2 cases, but does not name each of them with its reason" err
  test "$(tail -n 1 out)" = "3 passed, 0 failed, 2 skipped"
}

# The cases of a file of tests like this one.
case_a_skipped_shell_case_gives_its_reason() {
  cat >inner.sh <<TEXT
. "$source/tests/cli/support.sh"
case_plays() { skip no sound here; }
case_works() { true; }
run_cases
TEXT
  CAPSTAN_TEST_COUNTS=$PWD/counts exits 0 bash inner.sh
  diff counts - <<TEXT
1 0 1
case_plays: no sound here
TEXT
}

case_a_failed_case_fails() {
  add first 'echo 3 0 0 >$counts'
  add second 'echo 2 1 0 >$counts; exit 1'
  run 1
  test "$(tail -n 1 out)" = "5 passed, 1 failed, 0 skipped"
}

case_a_failed_case_fails_although_the_program_says_0() {
  add first 'echo 2 1 0 >$counts'
  run 1
}

case_a_program_that_fails_after_its_cases_fails() {
  add first 'echo 2 0 0 >$counts; exit 3'
  run 1
}

case_a_program_that_ran_nothing_fails() {
  add first 'echo 3 0 0 >$counts'
  add nothing 'echo 0 0 0 >$counts'
  run 1
  says "nothing: absent, crashed, or ran no test case" err
  test "$(tail -n 1 out)" = "3 passed, 0 failed, 0 skipped"
}

case_a_program_that_crashed_fails() {
  add crash 'kill -SEGV $$'
  run 1
  says "crash: absent, crashed, or ran no test case" err
}

case_an_absent_program_fails() {
  add first 'echo 3 0 0 >$counts'
  echo "add_test(gone \"$PWD/gone\")" >>build/CTestTestfile.cmake
  run 1
  says "gone: absent, crashed, or ran no test case" err
}

case_no_tests_at_all_fail() {
  mkdir build
  touch build/CTestTestfile.cmake
  run 1
}

# A repository with the branches main and mine, and a file in three rooms.
repository() {
  command -v git >/dev/null || skip "git is not installed"
  mkdir -p scripts core tests/core nn docs
  cp "$source"/scripts/{changed-files,test}.sh scripts/
  touch core/a.cpp nn/a.cpp docs/a.md
  git init -q -b main
  git config user.name test
  git config user.email test@localhost
  git add .
  git commit -qm first
  git switch -qc mine
}

case_changed_files_are_those_of_the_branch_and_of_the_working_tree() {
  repository
  echo 1 >nn/a.cpp
  git commit -qam second
  touch core/new.cpp
  rm docs/a.md
  scripts/changed-files.sh | diff - <(printf 'core/new.cpp\nnn/a.cpp\n')
}

case_fast_needs_a_room() {
  repository
  exits 2 scripts/test.sh --fast
  says "no room has changed files; name one: core nn models data train run serve apps" err
  exits 2 scripts/test.sh --fast core kitchen
  says "kitchen is no room" err
  exits 2 scripts/test.sh core
  says "scripts/test.sh --fast [ROOM...]" err
}

case_fast_finds_the_changed_rooms_and_names_what_it_does_not_test() {
  repository
  touch tests/core/new.cpp scripts/new.sh
  echo 1 >nn/a.cpp
  echo 1 >docs/a.md
  # Tools that build nothing: what is of interest is said before.
  mkdir bin
  printf '#!/bin/sh\nexit 3\n' | tee bin/cmake >bin/ctest
  chmod +x bin/*
  printf '%s\n' /bin /out /err >.git/info/exclude
  PATH=$PWD/bin:$PATH exits 3 scripts/test.sh --fast
  says "rooms: core nn" out
  says "--fast does not test these changed files; scripts/test.sh does: scripts/new.sh" err
}

run_cases
