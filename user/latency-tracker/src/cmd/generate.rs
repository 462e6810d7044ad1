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
    io::stdout().lock().write_all(&text)?;
    Ok(Outcome::Fine)
}

/// latency-tracker.1 and latency-tracker-COMMAND.1.
pub(crate) fn man(directory: &Path) -> Result<Outcome> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, directory)
        .with_context(|| directory.display().to_string())?;
    Ok(Outcome::Fine)
}
