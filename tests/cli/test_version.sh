# The version is in CMakeLists.txt; what repeats it agrees.
. "$(dirname "$0")/support.sh"

version=$(sed -n 's/^project(.* VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")

case_the_program_has_the_version_of_the_project() {
  test -n "$version"
  test "$("$capstan" --version)" = "capstan $version"
}

case_the_python_package_reads_it_there() {
  pattern=$(sed -n "s/^regex = '\(.*\)'$/\1/p" "$source/pyproject.toml")
  grep -qx 'input = "CMakeLists.txt"' "$source/pyproject.toml"
  perl -ne "print \"\$+{value}\\n\" if /$pattern/" "$source/CMakeLists.txt" | grep -qxF "$version"
}

case_examples_and_documents_ask_for_this_version() {
  grep -rhoE 'find_package\(capstan [0-9.]+' "$source/docs" "$source/examples" | sort -u >asked
  echo "find_package(capstan ${version%.*}" | diff asked -
}

case_the_changelog_tells_of_this_version() {
  grep -qE "^## \[$version\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$" "$source/CHANGELOG.md"
}

case_the_citation_has_this_version() {
  grep -qx "version: $version" "$source/CITATION.cff"
}

run_cases
