#!/usr/bin/env bash
# Every script that a user runs answers --help with its first lines, at once and without an error, and
# refuses an option that it does not know.
cd "$(dirname "$0")/../.."
failed=0
wrong() { echo "$*"; failed=1; }
# Their options are those of the program that they run, or names of packages.
passes_on=' bench parts/bench/kernels parts/bench/rules demo examples setup test parts/unpack '
for script in script/* script/parts/* script/parts/*/*; do
  if ! [ -f "$script" ] || ! [ -x "$script" ]; then continue; fi
  help=$("$script" --help 2>&1) || wrong "$script --help: status $?, $help"
  [ -n "$help" ] || wrong "$script --help: prints nothing"
  case $script in
    script/parts/*/*)  # a part: its script names it
      door=${script%/*} name=${script##*/}
      "script/${door##*/}" --help | grep -q "^  $name  *[a-z]" || wrong "script/${door##*/} --help lacks $name" ;;
  esac
  case $passes_on in *" ${script#script/} "*) continue ;; esac
  given=(--no-such-option)
  if [ "$script" = script/embed_weights ]; then given=(FILE --no-such-option); fi
  if error=$("$script" "${given[@]}" 2>&1); then wrong "$script --no-such-option: no error"; fi
  case $error in *no-such-option*) ;; *) wrong "$script --no-such-option: $error" ;; esac
done
exit $failed
