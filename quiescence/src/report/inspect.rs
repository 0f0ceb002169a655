//! Looks at a domain from outside while it works: what it is doing, and which reader has been in a
//! section longest.
//!
//! During the look, which takes as long as a grace period's scan, sections go on but grace periods
//! do not. So it is meant for a thread that looks about once a second, and is no part of
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
    /// Its number: how many grace periods have ended once it has.
    pub(crate) number: u64,
    /// How long it has been waiting for holdouts.
    pub(crate) waits_ns: u64,
}

/// The reader whose section began under the oldest number, of those in a section now.
pub(crate) struct LongestReader {
    pub(crate) qsbr: bool,
    /// The system's id of the thread; 0 if it has none.
    pub(crate) thread: u32,
    /// Where the outermost section began.
    pub(crate) location: Option<&'static Location<'static>>,
    /// The shortest time that it can have been in it: a grace period has waited for it so long.
    pub(crate) at_least_ns: u64,
}

impl DomainState {
    /// Looks at the domain.
    pub(crate) fn look(&self) -> Look {
        let now_ns = clock::monotonic_ns();
        // While these are held, no grace period takes a step, and no reader registers or
        // unregisters.
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
                    thread: slot.notes.thread.get(),
                    location: slot.notes.began(),
                    // A section under the latest number may have begun just now.
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
        // Relaxed: it is only shown; nothing is freed because of it.
        let word = slot.word().load(Relaxed);
        match word::nesting(word) {
            0 => None,
            // A reader in a relay that has come online and has no number yet.
            nesting if slot.is_qsbr() && nesting != 1 => Some((slot, 0)),
            _ => Some((slot, announced.0.wrapping_sub(word::number(word).0))),
        }
    });
    inside.max_by_key(|(_, turns)| *turns)
}
