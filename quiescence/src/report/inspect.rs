//! A look at a domain from outside, while it works: what it is doing, and who has been reading
//! longest.
//!
//! The domain stands still meanwhile, for as long as a grace period's scan takes: sections go on,
//! grace periods do not. So this is for the thread that looks once a second, and no part of
//! [`Statistics`](crate::report::Statistics).

use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;

use grace::{Number, word};

use crate::gp::engine::Engine;
use crate::gp::registry::Registry;
use crate::gp::slot::Slot;
use crate::os::clock;
use crate::reclaim::domain_state::DomainState;

/// What a domain is doing.
pub(crate) struct Look {
    pub(crate) engine: &'static str,
    pub(crate) in_progress: Option<InProgress>,
    pub(crate) longest_reader: Option<LongestReader>,
}

/// A grace period in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InProgress {
    /// Its number: how many will have ended when it has.
    pub(crate) number: u64,
    /// How long it has been waiting for holdouts.
    pub(crate) waits_ns: u64,
}

/// Of the readers that are in a section now: the one that entered under the oldest number.
pub(crate) struct LongestReader {
    pub(crate) qsbr: bool,
    /// The system's id of the thread; 0 where there is none.
    pub(crate) thread: u32,
    /// Where the outermost section began.
    pub(crate) location: Option<&'static Location<'static>>,
    /// How long it has been in it, at least: as long as a grace period has been waiting for it.
    pub(crate) at_least_ns: u64,
}

impl DomainState {
    /// Looks at the domain.
    pub(crate) fn look(&self) -> Look {
        let now_ns = clock::monotonic_ns();
        // Meanwhile no grace period takes a step, and no reader registers or unregisters.
        let (state, registry) = (self.grace_periods.lock(), self.grace_periods.registry());
        let machine = state.machine();
        let (sequence, waits_since_ns) = (machine.sequence(), state.current.waits_since_ns);
        let in_progress = sequence.in_progress().then(|| InProgress {
            number: sequence.ended().wrapping_add(1),
            waits_ns: waits_since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns)),
        });
        let waits_ns = in_progress.map_or(0, |in_progress| in_progress.waits_ns);
        let (engine, longest_reader) = if let Some(counted) = self.grace_periods.counted() {
            let reader = counted.oldest_guard().map(|(live, _)| LongestReader {
                qsbr: false,
                thread: live.thread,
                location: Some(live.location),
                at_least_ns: now_ns.saturating_sub(live.since_ns),
            });
            ("srcu", reader)
        } else {
            let reader = longest(&registry, self.grace_periods.announced()).map(|(slot, turns)| {
                LongestReader {
                    qsbr: slot.is_qsbr(),
                    thread: slot.thread(),
                    location: slot.began(),
                    // Under the number that was announced last, it may have begun just now.
                    at_least_ns: if turns == 0 { 0 } else { waits_ns },
                }
            });
            (Engine::of_policy(*machine.policy()).name(), reader)
        };
        Look { engine, in_progress, longest_reader }
    }
}

/// The reader whose section began under the oldest number, and how many numbers have been announced
/// since.
fn longest(registry: &Registry, announced: Number) -> Option<(&Slot, u32)> {
    let inside = registry.readers().filter_map(|slot| {
        // Relaxed: it is looked at, and nothing is freed for it.
        let word = slot.word().load(Relaxed);
        match word::nesting(word) {
            0 => None,
            // In a relay, a reader that has come online under no number yet.
            nesting if slot.is_qsbr() && nesting != 1 => Some((slot, 0)),
            _ => Some((slot, announced.0.wrapping_sub(word::number(word).0))),
        }
    });
    inside.max_by_key(|(_, turns)| *turns)
}
