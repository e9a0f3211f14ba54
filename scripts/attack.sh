#!/bin/bash
# Attacks the program on purpose, for as long as one likes. The tests labelled `long` do less of the same; docs/reliability.md says
# what is promised.
#   scripts/attack.sh calls [COUNT] [SEED]     a system call of a command fails: COUNT times (2000)
#   scripts/attack.sh kills [COUNT] [SEED]     kill -9 at a random moment, COUNT times (1000)
#   scripts/attack.sh power [COUNT] [SEED]     loss of power: at most COUNT states of the disk per kind of run (all)
#   scripts/attack.sh ranks [COUNT] [SEED] [CASES]    kill -9 and SIGTERM at a random rank of a job: COUNT signals (100); CASES (12)
#                                              in which a rank is stopped or killed in each phase
#   scripts/attack.sh replay [SEGMENTS] [CHANGES] [SEED]   pieces of runs of every system and task computed again, on other threads
#                                              and ranks (20); single bits of runs, data and configurations changed: is it named? (10 each)
#   scripts/attack.sh signals [ROUNDS] [SEED]  SIGINT or SIGTERM in each long phase of each command, ROUNDS times: does it end in 2 s?
#   scripts/attack.sh serve [ROUNDS] [SEED]    bad clients of `capstan serve`: is /health answered, and nothing lost?
#   scripts/attack.sh mutants FOLDER [COUNT] [SEED]   random changes of one token: which does no test notice? (scripts/mutate.py)
# CAPSTAN_ATTACK_ONLY=KIND restricts calls, kills and power to one kind of run of tests/faults/kinds.cpp; calls prints cases as
# KIND:CALL:ERROR, and CAPSTAN_ATTACK_ONLY repeats one of them. CAPSTAN_PROGRAM attacks another build of the program. What fails is
# printed as it is found, the sum at the end; the exit code is 0 when nothing failed. Temporary files go to TMPDIR, or to /dev/shm.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '4,13s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

# The test program, built and run: attack CASE DEFAULT_COUNT [COUNT] [SEED]
attack() {
  [ -e build/release/build.ninja ] || cmake --preset release
  cmake --build --preset release --target test_faults_long
  if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
  CAPSTAN_ATTACK_COUNT=${3:-$2} CAPSTAN_ATTACK_SEED=${4:-1} exec build/release/bin/test_faults_long --test-case="$1"
}

[ $# -ge 1 ] || usage
what=$1
shift
case $what in
  calls) attack 'a failing system call*' 2000 "$@" ;;
  kills) attack 'kill -9*' 1000 "$@" ;;
  power) attack 'loss of power*' 1000000 "$@" ;;
  ranks) exec scripts/attack/ranks.sh "$@" ;;
  replay) exec scripts/attack/replay.py "$@" ;;
  signals) exec scripts/attack/signals.py "$@" ;;
  serve) exec python3 scripts/attack/serve "$@" ;;
  mutants) [ $# -ge 1 ] || usage; exec scripts/mutate.py "$1" --count "${2:-300}" --seed "${3:-1}" ;;
  *) usage ;;
esac
