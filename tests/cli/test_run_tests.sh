# scripts/run-tests.sh on build folders made up for the purpose: the sum, what was skipped, and everything that must not pass
# for success.
. "$(dirname "$0")/support.sh"

# add NAME COMMAND: a test of the folder build; the command finds its file of counts in $counts
add() {
  mkdir -p build
  printf 'add_test(%s "/bin/sh" "-c" [=[counts=%s/build/test-counts/%s; %s]=])\n' "$1" "$PWD" "$1" "$2" >>build/CTestTestfile.cmake
}

run() { exits "$1" "$source/scripts/run-tests.sh" build; }

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

run_cases
