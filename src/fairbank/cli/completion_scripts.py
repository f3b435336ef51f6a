"""The completion as scripts of the shells. What may stand where is written into them; names are asked for when they are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.completion_words import FILES, FREE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairbank.cli.completion_words import Place

_BASH = r"""# bash: fairbank completion bash > ~/.local/share/bash-completion/completions/fairbank
# zsh:  autoload -U +X bashcompinit && bashcompinit; eval "$(fairbank completion zsh)"
_fairbank_words() { # what may follow these words: commands, verbs
  case "$1" in
%(words)s
  esac
}
_fairbank_options() { # the options of a command
  case "$1" in
%(options)s
  esac
}
_fairbank_value() { # what an option of a command takes: words, a kind of names, files, or anything
  case "$1 $2" in
%(values)s
  esac
}
_fairbank_place() { # what a command takes at its first, second, ... place
  case "$1 $2" in
%(places)s
  esac
}
_fairbank_usual() { # the command that is meant where options follow a noun
  case "$1" in
%(usual)s
    *) echo "$1" ;;
  esac
}
_fairbank() { # no variable is called path or words: zsh has its own of these names
  local cur="${COMP_WORDS[COMP_CWORD]}" before="" option="" lead="" place=1 at=1 word="" want="" offers=""
  COMPREPLY=()
  while ((at < COMP_CWORD)); do
    word="${COMP_WORDS[at]}"
    at=$((at + 1))
    if [[ $word == "=" ]]; then # bash cuts --option=value into three
      continue
    elif [[ $word == ":" ]]; then # and unix:/run/socket too
      at=$((at + 1))
    elif [[ -n $option ]]; then
      option=""
    elif [[ $word == -*=* ]]; then
      continue
    elif [[ $word == -* ]]; then
      before="$(_fairbank_usual "$before")"
      [[ -n "$(_fairbank_value "$before" "$word")" ]] && option="$word"
    elif [[ -n "$(_fairbank_words "$before")" ]]; then
      before="${before:+$before }$word"
    else
      place=$((place + 1))
    fi
  done
  [[ $cur == "=" || $cur == ":" ]] && cur=""
  if [[ -n $option ]]; then
    want="$(_fairbank_value "$before" "$option")"
  elif [[ $cur == --*=* ]]; then
    option="${cur%%%%=*}" lead="${cur%%%%=*}="
    want="$(_fairbank_value "$(_fairbank_usual "$before")" "$option")"
    cur="${cur#*=}"
  elif [[ $cur == -* ]]; then
    want="$(_fairbank_options "$(_fairbank_usual "$before")")"
  else
    want="$(_fairbank_words "$before")"
    [[ -z $want ]] && want="$(_fairbank_place "$before" "$place")"
  fi
  case "$want" in
    "" | -) return 0 ;;
    @files)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -f -- "$cur"))
      return 0
      ;;
    @*,)
      if [[ $cur == *,* ]]; then
        lead="$lead${cur%%,*},"
        cur="${cur##*,}"
      fi
      ;;
  esac
  case "$want" in
    @*)
      want="${want#@}"
      offers="$(command fairbank completion names "${want%%,}" 2>/dev/null)"
      ;;
    *) offers="$want" ;;
  esac
  COMPREPLY=($(compgen -P "$lead" -W "$offers" -- "$cur"))
}
complete -F _fairbank fairbank
"""
_OF_FAIRBANK = "fairbank"


def bash(places: Mapping[str, Place], program: str = _OF_FAIRBANK) -> str:
    """For bash, and for zsh by its bashcompinit. The names are those that `fairbank` tells, whatever the program."""
    script = _bash(places)
    if program == _OF_FAIRBANK:
        return script
    functions = script[script.index("_fairbank_words()") :]
    return functions.replace(
        "complete -F _fairbank fairbank", f"complete -F _fairbank {program}"
    ).replace("_fairbank", f"_{program}")


def _bash(places: Mapping[str, Place]) -> str:
    usual = [(f'"{path}"', f"{path} {each.usual}") for path, each in places.items() if each.usual]
    return _BASH % {
        "words": _cases(
            (f'"{path}"', " ".join(each.words)) for path, each in places.items() if each.words
        ),
        "options": _cases(
            (f'"{path}"', " ".join(each.options)) for path, each in places.items() if each.options
        ),
        "values": _cases(_values(places)),
        "places": _cases(
            (f'"{path} {number}"', want)
            for path, each in places.items()
            for number, want in enumerate(each.places, 1)
            if want != FREE
        ),
        "usual": _cases(usual),
    }


def _cases(pairs: Iterable[tuple[str, str]]) -> str:
    """Patterns with the same answer stand together."""
    by_answer: dict[str, list[str]] = {}
    for pattern, answer in pairs:
        by_answer.setdefault(answer, []).append(pattern)
    return "\n".join(
        f'    {" | ".join(patterns)}) echo "{answer}" ;;' for answer, patterns in by_answer.items()
    )


def _values(places: Mapping[str, Place]) -> Iterable[tuple[str, str]]:
    """A pattern for each option; where commands do not agree on it, one for each of them too."""
    answers: dict[str, dict[str, str]] = {}
    for path, place in places.items():
        for flag, want in place.values.items():
            answers.setdefault(flag, {})[path] = want
    for flag, by_path in answers.items():
        everywhere = all(
            flag in place.values or flag not in place.options for place in places.values()
        )
        if everywhere and len(set(by_path.values())) == 1:
            yield f'*" {flag}"', next(iter(by_path.values()))
        else:
            yield from ((f'"{path} {flag}"', want) for path, want in by_path.items())


def fish(places: Mapping[str, Place], program: str = _OF_FAIRBANK) -> str:
    """For fish. Names come with a word about each."""
    head = (
        ["# fairbank completion fish > ~/.config/fish/completions/fairbank.fish"]
        if program == _OF_FAIRBANK
        else []
    )
    lines = [*head, f"complete -c {program} -f"]
    for path, place in places.items():
        when = _seen(path, places)
        if place.words:
            lines.append(f"complete -c {program} -n '{when}' -a '{' '.join(place.words)}'")
        wants = dict.fromkeys(want for want in place.places if want != FREE)
        lines += [f"complete -c {program} -n '{when}' {_fish(want)}" for want in wants]
        for flag in place.options:
            short = f" -s {place.letters[flag]}" if flag in place.letters else ""
            takes = f" {_fish(place.values[flag])}" if flag in place.values else ""
            lines.append(
                f"complete -c {program} -n '{when}'{short} -l {flag.removeprefix('--')}{takes}"
            )
    return "\n".join(lines) + "\n"


def _seen(path: str, places: Mapping[str, Place]) -> str:
    seen = [f"__fish_seen_subcommand_from {word}" for word in path.split()] or [
        "__fish_use_subcommand"
    ]
    if places[path].words and path:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(places[path].words)}")
    return "; and ".join(seen)


def _fish(want: str) -> str:
    if want == FILES:
        return "-r -F"
    if want == FREE:
        return "-x"
    words = (
        f"(fairbank completion names {want.strip('@,')} --about 2>/dev/null)"
        if want.startswith("@")
        else want
    )
    return f"-x -a '{words}'"
