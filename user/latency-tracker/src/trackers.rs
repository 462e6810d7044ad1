// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Titles and examples from the pages of the trackers. The titles are for the man page, and for completion if the list
//! of a loaded module cannot be read. `list` shows the examples.

/// The pages in Documentation/trackers, with their names.
macro_rules! pages {
    ($($name:literal)*) => {
        const PAGES: &[(&str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../Documentation/trackers/", $name, ".md")),
        )),*];
    };
}

pages! {
    "accept" "block" "func" "io" "irq" "lock" "module" "net" "offcpu" "pair" "reclaim" "runqueue" "softirq" "syscall"
    "tree" "wakeup" "workqueue"
}

/// Returns the trackers, each with what it measures.
pub(crate) fn titles() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|(name, page)| (*name, title(page)))
}

/// Returns the title of a page, `# NAME: what it measures`, without the name.
fn title(page: &str) -> &str {
    let title = page.lines().find_map(|line| line.strip_prefix("# "));
    let title = title.and_then(|title| title.split_once(": "));
    title.map_or("", |(_, what)| what)
}

/// Returns the lines of the control language that start an instance of a tracker in the examples of its page.
pub(crate) fn examples(tracker: &str) -> Vec<String> {
    let Some((_, page)) = PAGES.iter().find(|(name, _)| *name == tracker) else {
        return Vec::new();
    };
    // A command and its continuation lines become one line.
    let page = page.replace("\\\n", " ");
    let lines = page.lines().filter_map(control_line);
    lines
        .filter(|line| line.split(' ').nth(1) == Some(tracker))
        .collect()
}

/// Returns what a command on a page writes to `control`; `None` if it writes nothing there, or is no command.
fn control_line(command: &str) -> Option<String> {
    let command = command.strip_prefix("    # ")?;
    let line = match command.strip_suffix("> /proc/latency_tracker/control") {
        Some(echo) => echo.strip_prefix("echo ")?.replace('\'', " "),
        None => command.strip_prefix("latency-tracker start ")?.to_string(),
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn all_documented_trackers_are_listed() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Documentation/trackers");
        let entries = fs::read_dir(directory).unwrap();
        let mut files: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let ours: Vec<String> = titles().map(|(name, _)| format!("{name}.md")).collect();
        assert_eq!(files, ours);
        assert!(titles().all(|(_, what)| !what.is_empty()));
    }

    #[test]
    fn an_example_is_a_command_of_the_page_with_all_its_lines() {
        let disk = "disk pair begin=tracepoint:block_rq_issue end=tracepoint:block_rq_complete \
                    begin_key=arg0 threshold=10ms";
        assert_eq!(examples("pair")[0], disk);
        // An argument of `latency-tracker start`.
        let by_stack = "sleeps offcpu by=stack comm=python3 when=blocked";
        assert!(examples("offcpu").contains(&by_stack.to_string()));
        // Instances of `module` are created by other modules.
        assert!(examples("module").is_empty() && examples("of_a_newer_module").is_empty());
    }
}
