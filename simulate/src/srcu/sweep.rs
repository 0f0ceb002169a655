//! What-if: the same caller under each combination of what somebody wants to vary.

use super::options::{Blocked, Invalid, Options, variant};
use super::report::Report;

/// What to vary; every combination is run. An empty list leaves what `base` says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sweep {
    /// All that is not varied.
    pub base: Options,
    /// Names of delay functions, of [`VARIANTS`](super::VARIANTS).
    pub variants: Vec<String>,
    /// Ticks a second.
    pub hz: Vec<u32>,
    /// Preemptible or not.
    pub preempt: Vec<bool>,
    /// Numbers of calls.
    pub calls: Vec<u32>,
    /// How long a reader blocks, from a tenth of a second on; 0 for none.
    pub blocked_ns: Vec<u64>,
}

/// When the reader of [`Sweep::blocked_ns`] enters: the loop is under way then.
const BLOCKED_FROM_NS: u64 = 100_000_000;

/// Runs every combination, in the order of the fields: the last varies fastest.
///
/// # Errors
/// [`Invalid`] of the first combination that is impossible; nothing is run then.
pub fn sweep(sweep: &Sweep) -> Result<Vec<(Options, Report)>, Invalid> {
    let mut all = vec![sweep.base.clone()];
    all = vary(&all, &sweep.hz, |options, hz| options.hz = *hz);
    let mut named = Vec::new();
    for name in &sweep.variants {
        for options in &all {
            let Some(delay) = variant(name, options.hz) else {
                return Err(Invalid {
                    option: "variant",
                    reason: "no delay function has this name",
                });
            };
            named.push(Options { delay, ..options.clone() });
        }
    }
    let all = if sweep.variants.is_empty() { all } else { named };
    let all = vary(&all, &sweep.preempt, |options, preempt| options.preempt = *preempt);
    let all = vary(&all, &sweep.calls, |options, calls| options.calls = *calls);
    let all = vary(&all, &sweep.blocked_ns, |options, for_ns| {
        let blocked = Blocked { from_ns: BLOCKED_FROM_NS, for_ns: *for_ns };
        options.blocked = (*for_ns > 0).then_some(blocked);
    });
    all.iter().try_for_each(Options::check)?;
    all.into_iter().map(|options| super::run(&options).map(|report| (options, report))).collect()
}

fn vary<T>(all: &[Options], values: &[T], set: impl Fn(&mut Options, &T)) -> Vec<Options> {
    if values.is_empty() {
        return all.to_vec();
    }
    let each = |options: &Options| {
        let options = options.clone();
        let set = &set;
        values.iter().map(move |value| {
            let mut options = options.clone();
            set(&mut options, value);
            options
        })
    };
    all.iter().flat_map(each).collect()
}
