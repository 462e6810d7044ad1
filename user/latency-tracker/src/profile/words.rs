// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The result of a comparison, as a sentence.

use lt_proc::Nanos;

use super::compare::{Comparison, Moved};

/// Minimum change of a share for which the bound is named.
const NOTABLE: f64 = 0.01;

/// Name of the operations of a class.
pub(crate) fn class_name(class: &str) -> &str {
    match class {
        "s_read" => "read calls",
        "s_write" => "write calls",
        "s_rw" => "read-and-write calls",
        "s_sync" => "sync calls",
        "s_open" => "open calls",
        "s_close" => "close calls",
        "b_read" => "read requests",
        "b_write" => "write requests",
        // A class of a newer module.
        other => other,
    }
}

/// Whether a difference is significant.
pub(crate) fn differs(comparison: &Comparison, significance: f64) -> bool {
    comparison.test.is_some_and(|test| test.p < significance)
}

/// The result of the test and the largest change of a share, as a sentence.
pub(crate) fn sentence(class: &str, comparison: &Comparison, significance: f64) -> String {
    let name = class_name(class);
    let (Some(test), Some(moved)) = (comparison.test, comparison.moved) else {
        let Comparison { before, after, .. } = comparison;
        return format!(
            "{name}: not tested, too few in different rows ({before} before, {after} after)"
        );
    };
    let p = p_value(test.p);
    if !differs(comparison, significance) {
        return format!("{name}: no significant difference ({p})");
    }
    let bound = Nanos(moved.bound);
    if moved.change().abs() < NOTABLE {
        let points = moved.change().abs() * 100.0;
        return format!(
            "{name}: a small difference, no share changed by more than {points:.2} points ({p})"
        );
    }
    let verb = if moved.change() > 0.0 { "rose" } else { "fell" };
    let Moved {
        share_before,
        share_after,
        ..
    } = moved;
    format!(
        "{name}: the share above {bound} {verb} from {} to {} ({p})",
        percent(share_before),
        percent(share_after)
    )
}

/// `p < 0.001`, `p = 0.042`.
pub(crate) fn p_value(p: f64) -> String {
    if p < 0.001 {
        "p < 0.001".into()
    } else {
        format!("p = {p:.3}")
    }
}

/// Formats a share with at least two digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 || percent > 99.0 && percent < 100.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::compare;
    use super::*;

    fn say(before: &[u64], after: &[u64]) -> String {
        let low: Vec<u64> = (0..before.len()).map(|i| 1 << (20 + i)).collect();
        sentence("b_write", &compare(&low, before, after).unwrap(), 0.001)
    }

    #[test]
    fn the_sentence_says_what_moved_where() {
        assert_eq!(
            say(&[500, 480, 0, 20, 0], &[400, 290, 0, 300, 10]),
            "write requests: the share above 8.39ms rose from 2.0 % to 31 % (p < 0.001)"
        );
        assert_eq!(
            say(&[400, 290, 0, 300, 10], &[500, 480, 0, 20, 0]),
            "write requests: the share above 8.39ms fell from 31 % to 2.0 % (p < 0.001)"
        );
    }

    #[test]
    fn no_difference_a_small_one_and_too_few_operations_have_different_words() {
        assert_eq!(
            say(&[50, 50], &[52, 48]),
            "write requests: no significant difference (p = 0.777)"
        );
        assert_eq!(
            say(&[10_000_000, 10_000_000], &[10_050_000, 9_950_000]),
            "write requests: a small difference, no share changed by more than 0.25 points (p < 0.001)"
        );
        assert_eq!(
            say(&[3, 1], &[2, 2]),
            "write requests: not tested, too few in different rows (4 before, 4 after)"
        );
    }

    #[test]
    fn all_classes_have_words() {
        for class in [
            "s_read", "s_write", "s_rw", "s_sync", "s_open", "s_close", "b_read", "b_write",
        ] {
            assert_ne!(class_name(class), class);
        }
        assert_eq!(class_name("n_new"), "n_new");
    }
}
