// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Completions and man pages, from the one description of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::Outcome;
use crate::cli::Cli;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "latency-tracker", &mut text);
    if shell == clap_complete::Shell::Bash {
        text = bash(&String::from_utf8_lossy(&text)).into_bytes();
    }
    io::stdout().lock().write_all(&text)?;
    Ok(Outcome::Fine)
}

/// What clap made for bash, with our own names.
fn bash(made: &str) -> String {
    // clap_complete 4.6 stores a state of a command with a hyphen in its name in one spelling and asks
    // for it in another, so that no option of a subcommand would be completed.
    let made = made.replace("latency__subcmd__tracker", "latency__tracker");
    // The function that clap made is the first thing in it.
    let generated = made.split("()").next().unwrap_or_default().trim();
    let names = BASH_NAMES.replace("GENERATED", generated);
    made + &names
}

/// What clap cannot know: the instances, trackers and parameters that there are now. It answers where
/// the generated function has no option to offer, from files that only some may read; else nothing.
const BASH_NAMES: &str = r#"
_latency_tracker_names() {
    local proc=/proc/latency_tracker cur=$2 cmd=${COMP_WORDS[1]} words names
    GENERATED "$@"
    [[ $cur != -* && $COMP_CWORD -ge 2 && -r $proc/control ]] || return 0
    words=$((COMP_CWORD - 1))
    case $cmd:$words in
        stop:*|start:1|record:1|list:1|watch:1|hist:1|pending:1|steps:1|tree:1) names=$(cut -d' ' -f1 $proc/control) ;;
        start:2|record:2|list:2) names=$(sed -n 's/^\([a-z]*\): .*/\1/p' $proc/trackers) ;;
        start:*|record:*)
            # after `name=` bash has split the word, and there is nothing to offer
            names=$(sed -n "/^${COMP_WORDS[3]}: /,/^[a-z]*: /s/^  \([a-z_]*=\).*/\1/p" $proc/trackers)
            [[ $COMP_WORDBREAKS != *=* ]] || [[ ${COMP_WORDS[COMP_CWORD - 1]} != = ]] || return 0
            compopt -o nospace ;;
        *) return 0 ;;
    esac
    # shellcheck disable=SC2207 # names have no spaces
    COMPREPLY+=($(compgen -W "$names" -- "$cur"))
}
complete -F _latency_tracker_names -o bashdefault -o default latency-tracker
"#;

/// latency-tracker.1 and latency-tracker-COMMAND.1.
pub(crate) fn man(directory: &Path) -> Result<Outcome> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, directory)
        .with_context(|| directory.display().to_string())?;
    Ok(Outcome::Fine)
}
