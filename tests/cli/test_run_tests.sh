# scripts/run-tests.sh on build folders made up for the purpose: the sum, and everything that must not pass for success.
. "$(dirname "$0")/support.sh"

# add NAME COMMAND: a test of the folder build; the command finds its file of counts in $counts
add() {
  mkdir -p build
  printf 'add_test(%s "/bin/sh" "-c" "counts=%s/build/test-counts/%s; %s")\n' "$1" "$PWD" "$1" "$2" >>build/CTestTestfile.cmake
}

run() { exits "$1" "$source/scripts/run-tests.sh" build; }

case_counts_are_summed() {
  add first 'echo 3 0 0 >$counts'
  add second 'echo 2 0 1 >$counts'
  run 0
  test "$(tail -n 1 out)" = "5 passed, 0 failed, 1 skipped"
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
