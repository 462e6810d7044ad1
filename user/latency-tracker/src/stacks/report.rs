// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The table of `stacks`, for people.

use std::collections::BTreeMap;

use lt_common::out::{self, Colour};
use lt_proc::Nanos;

use super::args::By;
use super::source::{Source, why_without};
use super::tally::{Group, Sum, Sums};
use super::user::User;

/// Maximum number of names in a row.
const NAMES: usize = 3;

pub(super) fn text(source: &Source, sums: &Sums, rows: usize) -> Vec<String> {
    let mut lines = vec![out::paint(Colour::Bold, &title(source, sums))];
    lines.extend(out::wrap(&which(source, sums), 0));
    if sums.all.count > 0 {
        lines.push(String::new());
        lines.extend(table(&sums.groups, sums.all.total, sums.by, rows));
    }
    lines.extend(incomplete(source, sums));
    lines.extend(in_flight(sums, rows));
    if let Some(recipe) = &source.recipe {
        lines.push(String::new());
        lines.extend(out::wrap(&format!("Next: {}", recipe.next), 0));
    }
    lines
}

fn title(source: &Source, sums: &Sums) -> String {
    let what = match (&source.recipe, &source.name, &source.tracker) {
        (Some(recipe), _, _) => recipe.question.clone(),
        (None, Some(name), Some(tracker)) => format!("{name} ({tracker})"),
        (None, Some(name), None) => out::printable(name),
        (None, None, tracker) => tracker.clone().unwrap_or_default(),
    };
    let time = match source.time {
        Some(time) if !time.is_zero() => Nanos(time.as_nanos() as u64),
        _ => Nanos(0),
    };
    let time = match (source.has_older, time) {
        (true, Nanos(0)) => ", as recorded".into(),
        (true, time) => format!(", as recorded, and for {time}"),
        (false, Nanos(0)) => String::new(),
        (false, time) => format!(", for {time}"),
    };
    let stacks = sums.groups.iter();
    let stacks = stacks.filter(|group| !group.is_bare() && !group.is_other());
    let operation = match sums.is_exact {
        true => "operation",
        false => "late operation",
    };
    format!(
        "{what}{time}: {} in {}, {} in all",
        out::plural(sums.all.count as usize, operation),
        out::plural(stacks.count(), "stack"),
        Nanos(sums.all.total)
    )
}

/// Which operations are in the sums.
pub(super) fn which(source: &Source, sums: &Sums) -> String {
    if sums.is_exact {
        return String::from("All operations that ended are in here, late or not (by=stack).");
    }
    let range = |(low, high): (u64, u64)| match low == high {
        true => Nanos(low).exact(),
        false => format!("{} to {}", Nanos(low).exact(), Nanos(high).exact()),
    };
    let set = source.threshold.map(|threshold| (threshold, threshold));
    let threshold = sums.limits.thresholds.or(set).map(range);
    let timeout = sums.limits.timeouts.map(range);
    let limits = match (threshold, timeout) {
        (None, None) => return "There is no alert.".into(),
        (Some(threshold), None) => format!("the threshold ({threshold})"),
        (None, Some(timeout)) => format!("the timeout ({timeout})"),
        (Some(threshold), Some(timeout)) => {
            format!("the threshold ({threshold}) or the timeout ({timeout})")
        }
    };
    if sums.all.count == 0 {
        return match source.unread {
            true => {
                format!("Operations took longer than {limits}, but none of their alerts was read.")
            }
            false => format!("Nothing that ended took longer than {limits}."),
        };
    }
    let mut text = format!("Only delays above {limits} are in here");
    if let Some((count, total)) = source.ended.filter(|(_, total)| *total > 0) {
        // The total is rounded down to microseconds, so the part may exceed it.
        let percent = (u128::from(sums.ended) * 100 / u128::from(total)).min(100);
        text += &format!(
            ": {percent} % of the time ({}) of all {} operations that ended",
            Nanos(total),
            out::thousands(count)
        );
    }
    text += ".";
    if source.is_worst {
        text += " The instance has worst=1: each is longer than all before it, and the others are missing.";
    }
    if sums.first.len() > 1 {
        let names: Vec<&str> = sums.first.keys().map(String::as_str).collect();
        text += &format!(
            " They are of {} instances ({}), whose operations may contain each other.",
            names.len(),
            names.join(", ")
        );
    }
    text
}

fn table(groups: &[Group], whole: u64, by: By, rows: usize) -> Vec<String> {
    let shown = match rows {
        0 => groups.len(),
        rows => rows.min(groups.len()),
    };
    let (shown, hidden) = groups.split_at(shown);
    let cells: Vec<Vec<String>> = shown.iter().map(|group| cells(group, whole, by)).collect();
    let mut head = vec![">COUNT", ">TOTAL", ">%", ">LONGEST", "COMM", "WOKEN BY"];
    head.truncate(cells.first().map_or(0, Vec::len));
    let mut table = out::table(&head, &cells).into_iter();
    let mut lines: Vec<String> = table
        .next()
        .map(|head| out::paint(Colour::Bold, &head))
        .into_iter()
        .collect();
    for (line, group) in table.zip(shown) {
        lines.push(line);
        lines.extend(frames(group, by));
    }
    if !hidden.is_empty() {
        let total = hidden
            .iter()
            .fold(0u64, |sum, group| sum.saturating_add(group.sum.total));
        lines.push(format!(
            "and {} more, {} together: --rows 0 shows all",
            out::plural(hidden.len(), "stack"),
            out::share(total, whole, "total")
        ));
    }
    lines
}

fn cells(group: &Group, whole: u64, by: By) -> Vec<String> {
    let permille = u128::from(group.sum.total) * 1000 / u128::from(whole.max(1));
    let mut cells = vec![
        out::thousands(group.sum.count),
        Nanos(group.sum.total).to_string(),
        format!("{}.{}", permille / 10, permille % 10),
        Nanos(group.sum.longest).to_string(),
    ];
    if !group.tasks.is_empty() {
        cells.push(names(group, |(comm, _)| comm));
    }
    if by != By::Kernel {
        cells.push(names(group, |(_, waker)| waker));
    }
    cells
}

/// The names with the longest totals.
fn names(group: &Group, which: impl Fn(&(String, String)) -> &String) -> String {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (tasks, Sum { total, .. }) in &group.tasks {
        let name = which(tasks).as_str();
        let sum: &mut u64 = totals.entry(name).or_default();
        *sum = sum.saturating_add(*total);
    }
    let mut names: Vec<(&str, u64)> = totals
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .collect();
    names.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    let more = names.len().saturating_sub(NAMES);
    let mut text: Vec<String> = names
        .iter()
        .take(NAMES)
        .map(|(name, _)| out::printable(name))
        .collect();
    if more > 0 {
        text.push(format!("{more} more"));
    }
    text.join(", ")
}

fn frames(group: &Group, by: By) -> Vec<String> {
    let mut lines = Vec::new();
    if group.is_without() {
        lines.push(out::frame("[no stack]"));
    }
    let head = |text: &'static str| (by == By::Both).then_some(text);
    let user: Vec<String> = group.user.iter().flat_map(User::lines).collect();
    let stacks = [
        (head("  waits in:"), &group.stack, group.is_cut),
        (Some("  in user space:"), &user, group.is_user_cut()),
        (
            head("  woken from:"),
            &group.waker_stack,
            group.is_waker_cut,
        ),
    ];
    for (head, stack, is_cut) in stacks {
        if stack.is_empty() {
            continue;
        }
        lines.extend(head.map(String::from));
        lines.extend(stack.iter().map(|function| out::frame(function)));
        if is_cut {
            lines.push(out::frame("[cut off]"));
        }
    }
    lines
}

/// Data missing from the sums, or misleading: a key, a number and a sentence.
pub(super) fn missing(source: &Source, sums: &Sums) -> Vec<(String, u64, String)> {
    let older: u64 = match source.has_older {
        true => sums
            .first
            .values()
            .map(|first| first.saturating_sub(1))
            .sum(),
        false => 0,
    };
    let count = |is: fn(&Group) -> bool| -> u64 {
        let groups = sums.groups.iter().filter(|group| is(group));
        groups.map(|group| group.sum.count).sum()
    };
    let without = match sums.by {
        _ if sums.is_exact => "operations whose stack was not found",
        By::Waker => {
            "late operations without the stack of a waker: not woken, or woken before the threshold had passed; \
             only offcpu records it"
        }
        By::Kernel | By::Both => why_without(source),
    };
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &sums.groups {
        if let Some(User::Missing(why)) = group.user {
            *reasons.entry(why).or_default() += group.sum.count;
        }
    }
    let without_user: u64 = reasons.values().sum();
    let each = reasons.iter();
    let each = each.map(|(why, n)| format!("{} {why}", out::thousands(*n)));
    let each: Vec<String> = each.collect();
    let no_user = format!(
        "late operations without a stack in user space: {}",
        each.join(", ")
    );
    let all: [(&str, u64, &str); 11] = [
        (
            "other",
            count(Group::is_other),
            "operations of stacks after the first max_labels=, or that ended just as their stack got a row",
        ),
        ("no_stack", count(Group::is_without), without),
        (
            "cut_off",
            count(Group::is_incomplete),
            "operations whose stack is cut off at the depth limit (stack=, at most 32; of a waker 16)",
        ),
        ("no_user_stack", without_user, no_user.as_str()),
        (
            "user_cut_off",
            count(Group::is_user_cut),
            "operations whose stack in user space does not reach the outermost function: it has more than 16 functions, \
             lacks frame pointers, or was not in memory",
        ),
        (
            "unnamed",
            count(Group::is_unnamed),
            "operations with functions of a program that are known by their place only: its process had exited when the \
             alert was read, no symbol table has them, or the file has no names (--alerts)",
        ),
        (
            "several",
            sums.moved,
            "operations that waited in several places: each counts under its last stack",
        ),
        (
            "not_ended",
            sums.unfinished,
            "operations that had not ended when last seen: counted with their delay so far",
        ),
        (
            "before_start",
            sums.at_least,
            "operations that began before their instance: their delay is at least what is counted",
        ),
        (
            "unread",
            source.missed,
            "alerts overwritten before they were read; a larger ring= avoids it",
        ),
        (
            "older",
            older,
            "alerts no longer in the ring when this command started, and not in here",
        ),
    ];
    let own = all.into_iter().filter(|(_, n, _)| *n > 0);
    let own = own.map(|(key, n, text)| (key.to_string(), n, text.to_string()));
    let losses = source.losses.iter();
    own.chain(losses.map(|(key, n, text)| (key.clone(), *n, (*text).to_string())))
        .collect()
}

fn incomplete(source: &Source, sums: &Sums) -> Vec<String> {
    let missing = missing(source, sums);
    if missing.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![
        String::new(),
        out::paint(Colour::Bold, "Lost, incomplete or not counted"),
    ];
    let rows: Vec<Vec<String>> = missing
        .into_iter()
        .map(|(key, n, text)| vec![format!("  {key}"), out::thousands(n), text])
        .collect();
    let table = out::table(&["  COUNTER", ">COUNT", "WHAT"], &rows);
    lines.extend(table.into_iter().skip(1));
    lines
}

fn in_flight(sums: &Sums, rows: usize) -> Vec<String> {
    let groups = &sums.in_flight;
    if groups.is_empty() {
        return Vec::new();
    }
    let (count, total) = groups.iter().fold((0, 0u64), |(count, total), group| {
        (
            count + group.sum.count as usize,
            total.saturating_add(group.sum.total),
        )
    });
    let title = format!(
        "Not ended, for longer than the threshold, and not in the sums: {}",
        out::plural(count, "operation")
    );
    let mut lines = vec![String::new(), out::paint(Colour::Bold, &title)];
    lines.extend(table(groups, total, By::Kernel, rows));
    lines
}
