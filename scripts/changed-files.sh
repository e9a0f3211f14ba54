#!/bin/bash
# The files this branch changed, one per line, committed or not: against where it left origin/main, or main where there is no
# remote. On that branch itself: what is not committed yet.
set -euo pipefail
cd "$(dirname "$0")/.."

base=HEAD
for branch in origin/main main; do
  if git rev-parse --verify --quiet "$branch" >/dev/null; then
    base=$(git merge-base HEAD "$branch" || echo "$branch")  # a shallow clone may not have it
    break
  fi
done
{
  git diff --name-only --diff-filter=d "$base"
  git ls-files --others --exclude-standard
} | sort -u
