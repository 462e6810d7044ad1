// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Completion scripts for shells, and man pages from the description of the command line.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;
use lt_common::Outcome;

use crate::cli::Cli;
use crate::completion;
use crate::trackers::titles;

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Outcome> {
    io::stdout().lock().write_all(&completion::script(shell)?)?;
    Ok(Outcome::Fine)
}

/// Writes latency-tracker.1 and latency-tracker-COMMAND.1.
pub(crate) fn man(directory: &Path) -> Result<Outcome> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    pages(&command, None, directory).with_context(|| directory.display().to_string())?;
    Ok(Outcome::Fine)
}

/// Writes the page of `command` and the pages of its subcommands; `above` is the page of its
/// parent.
fn pages(command: &clap::Command, above: Option<&str>, directory: &Path) -> io::Result<()> {
    // clap_mangen's own synopsis shows neither the `--` before a COMMAND nor what may be repeated.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_string();
    let man = clap_mangen::Man::new(command.clone().after_help(None).override_usage(usage));
    let file = man.get_filename();
    let name = file.trim_end_matches(".1");
    let mut page = Vec::new();
    man.render(&mut page)?;
    let mut page = String::from_utf8(page).map_err(io::Error::other)?;
    let below = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let help = command.get_after_help().map(ToString::to_string);
    let (questions, other) = without_questions(&help.unwrap_or_default());
    page.insert_str(place_of_questions(&page), &sections(&questions));
    let mut text = sections(&other);
    if above.is_none() {
        text += ".SH TRACKERS\n";
        for (tracker, what) in titles() {
            text += &format!(".TP\n\\fB{tracker}\\fR\n{}\n", escaped(what));
        }
        text += "`latency\\-tracker list \\-\\-trackers` shows their parameters.\n";
    }
    if above.is_none() || name == "latency-tracker-record" {
        text += ".SH FILES\n";
        for (path, what) in FILES {
            text += &format!(".TP\n\\fI{}\\fR\n{}\n", escaped(path), escaped(what));
        }
    }
    let related = above.map(String::from).into_iter();
    let related = related.chain(below().map(|sub| format!("{name}-{}", sub.get_name())));
    let others = above.is_none().then_some(["lttng", "babeltrace2"]);
    let related = related.chain(others.into_iter().flatten().map(String::from));
    let related: Vec<String> = related
        .map(|page| format!("\\fB{}\\fR(1)", escaped(&page)))
        .collect();
    text += &format!(".SH SEE ALSO\n{}\n", related.join(", "));
    page.push_str(&text);
    fs::write(directory.join(&file), page)?;
    below().try_for_each(|sub| pages(sub, Some(name), directory))
}

/// Splits the paragraphs after the options into the questions and the others.
fn without_questions(after_help: &str) -> (String, String) {
    let all = after_help.split("\n\n");
    let is_questions = |paragraph: &&str| paragraph.starts_with("Questions:");
    let (questions, others): (Vec<&str>, Vec<&str>) = all.partition(is_questions);
    (questions.join("\n\n"), others.join("\n\n"))
}

/// Returns the place of the questions in a page: before the options and the long list of subcommands.
fn place_of_questions(page: &str) -> usize {
    let options = page.find("\n.SH OPTIONS\n");
    options.map_or(page.len(), |line| line + 1)
}

/// Returns the paragraphs after the options as sections; examples are neither filled nor
/// hyphenated.
fn sections(after_help: &str) -> String {
    let mut text = String::new();
    for paragraph in after_help.split("\n\n") {
        let (head, body) = match paragraph.split_once(':') {
            Some(("Exit status", body)) => ("EXIT STATUS", body),
            Some(("Examples" | "Example", body)) => ("EXAMPLES", body),
            Some(("Questions", body)) => ("QUESTIONS", body),
            _ if paragraph.trim().is_empty() => continue,
            _ => ("NOTES", paragraph),
        };
        // Several paragraphs without a heading are one section.
        match text.contains(".SH NOTES\n") && head == "NOTES" {
            true => text += ".PP\n",
            false => text += &format!(".SH {head}\n"),
        }
        let as_is = body.lines().any(|line| line.starts_with("  "));
        let body = body.trim_matches('\n');
        match as_is {
            true => text += &format!(".nf\n{}\n.fi\n", escaped(body)),
            false => text += &format!("{}\n", escaped(body.trim_start())),
        }
    }
    text
}

/// Escapes text for roff: no part of it is read as an escape or a request, and its hyphens can
/// be copied.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_string(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

const FILES: [(&str, &str); 8] = [
    ("/proc/latency_tracker", "the files of the kernel module"),
    (
        "/etc/latency-tracker/*.conf",
        "instances to start: read by `apply` and by the service latency-tracker",
    ),
    (
        "/etc/latency-tracker/recipes/*.recipe",
        "recipes of your own, for `run`",
    ),
    (
        "/etc/default/latency-tracker-record",
        "options of the services latency-tracker-record@NAME",
    ),
    (
        "/etc/default/latency-tracker-export",
        "options of the service latency-tracker-export",
    ),
    (
        "/var/lib/latency-tracker/captures",
        "the captures of `record`, unless -o names another directory",
    ),
    (
        "/run/latency-tracker",
        "state until the next boot: what each run has set up, which a later run removes if that \
         run was killed; the instances that `apply` has started; the resets of `hist`",
    ),
    (
        "/usr/share/doc/latency-tracker",
        "the guides, as text; below /usr/local after `make install`. guide/explain.md: what the \
         sentences mean. guide/administrators.md: what it costs, and who may read what. \
         trackers/NAME.md: the parameters and fields of a tracker",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_becomes_the_sections_of_a_page() {
        let text = sections(
            "Exit status: 0 fine,\n1 error.\n\nExamples:\n  a-b \\\n      .c\n\nOne.\n\nTwo.",
        );
        assert_eq!(
            text,
            ".SH EXIT STATUS\n0 fine,\n1 error.\n.SH EXAMPLES\n.nf\n  a\\-b \\e\n      .c\n.fi\n.SH NOTES\nOne.\n\
             .PP\nTwo.\n"
        );
        assert_eq!(escaped(".a"), "\\&.a");
    }

    #[test]
    fn a_synopsis_shows_where_a_command_begins() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let page = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let why = page("latency-tracker-why.1");
        assert!(why.contains("[\\-\\- <COMMAND>...]"), "{why}");
        // `profile record` saves no captures.
        let (record, other) = (
            page("latency-tracker-record.1"),
            page("latency-tracker-profile-record.1"),
        );
        assert!(record.contains(".SH FILES") && !other.contains(".SH FILES"));
    }

    #[test]
    fn the_questions_come_before_the_subcommands() {
        let directory = tempfile::tempdir().unwrap();
        man(directory.path()).unwrap();
        let main = fs::read_to_string(directory.path().join("latency-tracker.1")).unwrap();
        let heads = main.lines().filter_map(|line| line.strip_prefix(".SH "));
        let heads: Vec<&str> = heads.collect();
        let expected = ["DESCRIPTION", "QUESTIONS", "OPTIONS", "SUBCOMMANDS"];
        assert_eq!(heads[2..6], expected, "{heads:?}");
        let questions = heads.iter().filter(|head| **head == "QUESTIONS");
        assert_eq!(questions.count(), 1);
        // A page without options has the questions at its end.
        assert_eq!(place_of_questions(".SH NAME\na\n"), 11);
    }
}
