#!/usr/bin/env bash
# The places that repeat the version of core/version.hpp have it.
cd "$(dirname "$0")/../.."
. script/parts/environment
version=$(library_version)
failed=0
# has file text
has() {
  if grep -qF -- "$2" "$1"; then return; fi
  echo "$1: expected '$2'"
  failed=1
}
has packaging/vcpkg/ports/fastweights/vcpkg.json "\"$version\""
has CITATION.cff "version: $version"
has CHANGELOG.md "## $version - "
# Every find_package(fastweights …) asks for this minor version.
while IFS=: read -r file line text; do
  case $text in
    *"fastweights ${version%.*} "* | *"fastweights ${version%.*})"*) ;;
    *) echo "$file:$line: expected ${version%.*} in '$text'"; failed=1 ;;
  esac
done < <(grep -rnE 'find_package\(fastweights [0-9]' README.md docs tests python --include=*.md \
  --include=CMakeLists.txt)
exit $failed
