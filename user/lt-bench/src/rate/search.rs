// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The search for the highest rate at which nothing is lost: which rate to try next, given the
//! results so far.
//!
//! ```text
//!   FLOOR          lossless                        lossy            full rate
//!     |---------------o-------------?----------------x---------------x
//!                     `---- the middle is next: each step halves the distance on a log scale
//! ```
//!
//! Two runs at one rate may differ: a run may be disturbed, or lucky. A rate that lost anything
//! counts as lossy from then on, and so does every higher rate. The answer is a rate that has been
//! run as often as requested without a loss.
//!
//! The search is a function of the trials, so that a model can replace LTTng in its tests.

/// The lowest rate to try, in events per second.
pub(super) const FLOOR: u64 = 100;
/// Maximum number of trials, for a machine whose results keep changing.
pub(super) const MOST: usize = 60;

/// When the search ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The search ends when the lossless and the lossy rate differ by at most this factor.
    pub(super) factor: f64,
    /// Number of runs without a loss that the answer needs.
    pub(super) repeat: usize,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trial {
    /// The requested rate; `None` for full rate.
    pub(super) asked: Option<u64>,
    /// The actual rate.
    pub(super) made: u64,
    pub(super) lossless: bool,
}

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Run at full rate.
    Full,
    /// Run at this rate.
    Try(u64),
    Done(Answer),
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Nothing is lost even at full rate.
    NoLoss,
    /// There is a rate up to which nothing is lost.
    Found,
    /// Something is lost even at [`FLOOR`].
    AlwaysLoses,
    /// Something is lost at the one requested rate.
    Lossy,
    /// The search was interrupted, or reached its maximum number of trials.
    Unsettled,
}

/// The result of the search. Its rates are actual rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) verdict: Verdict,
    /// The highest rate without a loss.
    pub(super) lossless: Option<u64>,
    /// The lowest rate with a loss.
    pub(super) lossy: Option<u64>,
}

/// The trials so far, and the bounds that they imply.
struct Known<'a> {
    trials: &'a [Trial],
    /// The lowest rate that lost something.
    lossy: Option<u64>,
    /// The highest rate below it that lost nothing.
    lossless: Option<u64>,
}

impl<'a> Known<'a> {
    fn new(trials: &'a [Trial]) -> Self {
        let mut known = Self {
            trials,
            lossy: None,
            lossless: None,
        };
        let lossy = trials.iter().filter(|t| !t.lossless);
        known.lossy = lossy.map(|t| known.rate(t)).min();
        let below = |rate: &u64| known.lossy.is_none_or(|lossy| *rate < lossy);
        let lossless = trials.iter().filter(|t| t.lossless).map(|t| known.rate(t));
        known.lossless = lossless.filter(below).max();
        known
    }

    /// Returns the rate of a trial. All runs at full rate count as one rate, although their actual
    /// rates differ.
    fn rate(&self, trial: &Trial) -> u64 {
        let full = || self.trials.iter().find(|t| t.asked.is_none());
        trial
            .asked
            .unwrap_or_else(|| full().map_or(trial.made, |t| t.made).max(FLOOR))
    }

    fn runs(&self, rate: u64) -> usize {
        self.trials.iter().filter(|t| self.rate(t) == rate).count()
    }

    fn answer(&self, verdict: Verdict) -> Answer {
        let made = |rate: Option<u64>, lossless: bool| {
            let of = |t: &&Trial| Some(self.rate(t)) == rate && t.lossless == lossless;
            self.trials.iter().filter(of).map(|t| t.made).min()
        };
        Answer {
            verdict,
            lossless: made(self.lossless, true),
            lossy: made(self.lossy, false),
        }
    }
}

/// Returns the next step after these trials.
pub(super) fn next(rules: Rules, trials: &[Trial]) -> Next {
    let known = Known::new(trials);
    let repeat = rules.repeat.max(1);
    let done = |verdict| Next::Done(known.answer(verdict));
    if trials.len() >= MOST {
        return done(Verdict::Unsettled);
    }
    let close = |low: u64, high: u64| high <= low + 1 || high as f64 <= low as f64 * rules.factor;
    match (known.lossless, known.lossy) {
        (None, None) => Next::Full,
        (Some(rate), None) if known.runs(rate) >= repeat => done(Verdict::NoLoss),
        (Some(_), None) => Next::Full,
        (None, Some(lossy)) if lossy <= FLOOR => done(Verdict::AlwaysLoses),
        (None, Some(lossy)) if close(FLOOR, lossy) => Next::Try(FLOOR),
        (None, Some(lossy)) => Next::Try(middle(FLOOR, lossy)),
        (Some(low), Some(high)) if !close(low, high) => Next::Try(middle(low, high)),
        (Some(low), Some(_)) if known.runs(low) < repeat => Next::Try(low),
        (Some(_), Some(_)) => done(Verdict::Found),
    }
}

/// Returns the result so far, for an interrupted search.
pub(super) fn so_far(trials: &[Trial]) -> Answer {
    Known::new(trials).answer(Verdict::Unsettled)
}

/// Returns the geometric mean; strictly between the two if there is an integer between them.
fn middle(low: u64, high: u64) -> u64 {
    let mean = (low as f64 * high as f64).sqrt() as u64;
    mean.clamp(low + 1, high.saturating_sub(1).max(low + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        factor: 1.05,
        repeat: 2,
    };

    /// Searches on a model that can generate `full` events per second. `lossless` returns whether a
    /// run at a rate loses nothing.
    fn search(
        rules: Rules,
        full: u64,
        mut lossless: impl FnMut(u64) -> bool,
    ) -> (Answer, Vec<Trial>) {
        let mut trials = Vec::new();
        loop {
            let asked = match next(rules, &trials) {
                Next::Done(answer) => return (answer, trials),
                Next::Full => None,
                Next::Try(rate) => Some(rate),
            };
            let made = asked.unwrap_or(full).min(full);
            trials.push(Trial {
                asked,
                made,
                lossless: lossless(made),
            });
        }
    }

    #[test]
    fn no_loss_at_full_rate_is_an_answer() {
        let (answer, trials) = search(RULES, 3_000_000, |_| true);
        assert_eq!(
            (answer.verdict, answer.lossless, answer.lossy),
            (Verdict::NoLoss, Some(3_000_000), None)
        );
        assert_eq!(trials.len(), 2);
    }

    #[test]
    fn a_loss_at_every_rate_is_an_answer() {
        let (answer, trials) = search(RULES, 3_000_000, |_| false);
        assert_eq!(
            (answer.verdict, answer.lossless, answer.lossy),
            (Verdict::AlwaysLoses, None, Some(FLOOR))
        );
        assert!(trials.len() < 20, "{}", trials.len());
        // The machine is slower than the floor.
        let (answer, _) = search(RULES, 5, |_| false);
        assert_eq!(answer.verdict, Verdict::AlwaysLoses);
    }

    #[test]
    fn a_search_ends_soon() {
        let (answer, trials) = search(RULES, 10_000_000, |rate| rate <= 1_234_567);
        assert_eq!(answer.verdict, Verdict::Found);
        assert!(trials.len() <= 12, "{}", trials.len());
    }

    #[test]
    fn a_rate_that_lost_once_is_not_an_answer() {
        // The first run at each rate up to 1,000,000 loses nothing. The second run loses events
        // above 500,000.
        let mut seen = Vec::new();
        let (answer, trials) = search(RULES, 2_000_000, |rate| {
            let again = seen.contains(&rate);
            seen.push(rate);
            rate <= if again { 500_000 } else { 1_000_000 }
        });
        assert_eq!(answer.verdict, Verdict::Found, "{trials:?}");
        assert!(answer.lossless.is_some_and(|rate| rate <= 500_000));
    }

    #[test]
    fn a_search_without_an_answer_gives_up() {
        let mut coin = 7u64;
        let (answer, trials) = search(
            Rules {
                factor: 1.0,
                repeat: 50,
            },
            u64::MAX >> 12,
            |_| {
                coin = coin.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                coin >> 60 != 0
            },
        );
        assert!(trials.len() <= MOST);
        assert!(matches!(
            answer.verdict,
            Verdict::Unsettled | Verdict::Found | Verdict::AlwaysLoses
        ));
    }

    #[test]
    fn an_interrupted_search_returns_the_bounds_so_far() {
        assert_eq!(so_far(&[]).lossless, None);
        let trial = |asked, lossless| Trial {
            asked,
            made: asked.unwrap_or(9000),
            lossless,
        };
        let answer = so_far(&[trial(None, false), trial(Some(950), true)]);
        assert_eq!(
            (answer.verdict, answer.lossless, answer.lossy),
            (Verdict::Unsettled, Some(950), Some(9000))
        );
    }

    proptest! {
        #[test]
        fn the_answer_encloses_the_limit(full in 1000u64..50_000_000, limit in 1u64..50_000_000, percent in 1u32..50) {
            let rules = Rules { factor: 1.0 + f64::from(percent) / 100.0, repeat: 2 };
            let (answer, trials) = search(rules, full, |rate| rate <= limit);
            prop_assert!(trials.len() < MOST);
            match answer.verdict {
                Verdict::NoLoss => prop_assert!(limit >= full),
                Verdict::AlwaysLoses => prop_assert!(limit < FLOOR),
                Verdict::Found => {
                    let (low, high) = (answer.lossless.unwrap(), answer.lossy.unwrap());
                    prop_assert!(low <= limit && limit < high);
                    prop_assert!(high <= low + 1 || high as f64 <= low as f64 * rules.factor);
                }
                Verdict::Unsettled | Verdict::Lossy => prop_assert!(false, "{trials:?}"),
            }
        }

        #[test]
        fn however_noisy_it_is_the_answer_was_run_often_enough_and_never_lost(seed in any::<u64>(), limit in 1000u64..9_000_000, noise in 0.0f64..0.5) {
            let mut state = seed;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            // Around the limit, a run may lose events or not.
            let (answer, trials) = search(RULES, 10_000_000, |rate| (rate as f64) < limit as f64 * (1.0 + noise * (random() - 0.5)));
            prop_assert!(trials.len() <= MOST);
            if answer.verdict == Verdict::Found {
                let (low, high) = (answer.lossless.unwrap(), answer.lossy.unwrap());
                prop_assert!(low < high);
                prop_assert!(trials.iter().filter(|t| t.made == low && t.lossless).count() >= RULES.repeat);
                prop_assert!(trials.iter().all(|t| t.lossless || t.made >= high));
                prop_assert!(high <= low + 1 || high as f64 <= low as f64 * RULES.factor);
            }
        }
    }
}
