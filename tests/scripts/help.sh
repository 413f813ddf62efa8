#!/usr/bin/env bash
# Every script that a user runs answers --help with its first lines, at once and without an error, and
# refuses an option that it does not know.
cd "$(dirname "$0")/../.."
failed=0
wrong() { echo "$*"; failed=1; }
# Their options are those of the program that they run, or names of packages.
passes_on=" bench bench_rules demo examples setup test unpack "
for script in script/*; do
  name=$(basename "$script")
  if ! [ -x "$script" ]; then continue; fi
  help=$("$script" --help 2>&1) || wrong "$script --help: status $?, $help"
  [ -n "$help" ] || wrong "$script --help: prints nothing"
  case $passes_on in *" $name "*) continue ;; esac
  given=(--no-such-option)
  if [ "$name" = embed_weights ]; then given=(FILE --no-such-option); fi
  if error=$("$script" "${given[@]}" 2>&1); then wrong "$script --no-such-option: no error"; fi
  case $error in *no-such-option*) ;; *) wrong "$script --no-such-option: $error" ;; esac
done
exit $failed
