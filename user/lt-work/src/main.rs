// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `lt-work`: marks work from the command line, or runs a command as work.

use std::env;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

use lt_work::Marks;

const USAGE: &str = "\
usage: lt-work [-i INSTANCE] begin COOKIE
       lt-work [-i INSTANCE] done COOKIE
       lt-work [-i INSTANCE] run COOKIE COMMAND [WORD...]

Marks work for the instances of latency-tracker with end=work, or for one.
`run` marks the work when COMMAND starts and when it has ended, and has the exit
status of COMMAND, which also runs if no instance follows the work.
";

fn main() -> ExitCode {
    match run() {
        Ok(Some(code)) => code,
        Ok(None) => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("lt-work: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the exit status; `None` if the arguments do not match [`USAGE`].
fn run() -> io::Result<Option<ExitCode>> {
    let mut words: Vec<_> = env::args_os().skip(1).collect();
    let mut instance = None;
    if words.first().is_some_and(|word| word == "-i") && words.len() > 1 {
        instance = Some(words.remove(1).to_string_lossy().into_owned());
        words.remove(0);
    }
    // With `run`, the words after the cookie are the command and its arguments.
    let own = if words.first().is_some_and(|word| word == "run") {
        2
    } else {
        words.len()
    };
    if words.iter().take(own).any(|word| word == "--help") {
        print!("{USAGE}");
        return Ok(Some(ExitCode::SUCCESS));
    }
    let marks = || match &instance {
        Some(name) => Marks::open_instance(name),
        None => Marks::open(),
    };
    match words.as_slice() {
        [what, cookie] if what == "begin" => marks()?.begin(cookie.as_bytes())?,
        [what, cookie] if what == "done" => marks()?.done(cookie.as_bytes())?,
        [what, cookie, command, rest @ ..] if what == "run" => {
            let marks = marks().inspect_err(not_followed);
            let work = marks.as_ref().ok().and_then(|marks| {
                let begun = marks.work(cookie.as_bytes());
                begun.inspect_err(not_followed).ok()
            });
            let status = Command::new(command).args(rest).status()?;
            drop(work);
            // As in a shell: 128 plus the number of the signal.
            let code = status.code().or(status.signal().map(|signal| 128 + signal));
            let code = code.and_then(|code| u8::try_from(code).ok());
            return Ok(Some(code.map_or(ExitCode::FAILURE, ExitCode::from)));
        }
        _ => return Ok(None),
    }
    Ok(Some(ExitCode::SUCCESS))
}

fn not_followed(error: &io::Error) {
    eprintln!("lt-work: the work is not followed: {error}");
}
