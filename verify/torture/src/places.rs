//! The domains of the theme `readers`, and who reads and updates in which.

use std::sync::Arc;

use grace::{Number, Sequence, Start};
use quiescence::tag::ThreadTag;
use quiescence::tuning::{Builder, Fences};
use quiescence::{Domain, tag::Private};

use super::arena::{Arena, Participant};
use super::fixture::Fixture;
use super::kinds::Named;
use super::kinds::ReaderKind::{self, Handle, Nested, Passing, Qsbr, Read};
use super::report::Setup;

/// Grace periods before the counters of the second domain wrap; the counter has 63 bits.
const BEFORE_WRAP: u32 = 64;
const FIRST_OF_WRAPPING: u64 = (u64::MAX >> 1) - BEFORE_WRAP as u64;

/// Bits in the grace-period numbers of the third domain: they come round after eight, so that its
/// grace periods announce two numbers each.
const FEW_BITS: u32 = 3;

/// What a domain is called, how it is built if it is a private one, and the readers there.
type Place = (&'static str, fn(Builder) -> Builder, &'static [ReaderKind]);

/// The domains. Readers are given out in this order, and from the start again.
const DOMAINS: [Place; 5] = [
    ("global domain", |global| global, &[Read, Nested, Handle, Qsbr, Passing]),
    (
        "private domain whose counters wrap",
        |wrapping| {
            let sequence = Sequence::after(FIRST_OF_WRAPPING);
            let number = Number(u32::MAX - BEFORE_WRAP);
            wrapping.starting_at(Start { sequence, number, ..Start::ZERO })
        },
        &[Read, Nested, Handle, Qsbr, Passing],
    ),
    // Readers come and go: often none is registered.
    (
        "private domain with few readers",
        |sparse| sparse.starting_at(Start { number_bits: FEW_BITS, ..Start::ZERO }),
        &[Passing, Passing],
    ),
    // Where a reader does not wake the one that waits, no other takes its place as the driver.
    ("private domain with one waiter", |lone| lone, &[Read, Handle]),
    // Readers execute full fences, and grace periods no membarrier.
    (
        "private domain whose readers fence",
        |fencing| fencing.fences(Fences::Portable),
        &[Read, Nested, Qsbr, Passing],
    ),
];

/// The domain in which one thread alone waits.
const LONE: usize = 3;

/// The domains of the updaters, more than one in most, so that they share grace periods. The one
/// that waits alone is the last, and is not given out again.
const UPDATERS: [usize; 7] = [0, 1, 0, 2, 1, 4, LONE];

/// The readers and the updaters.
pub(crate) fn cast(fixture: &mut Fixture, setup: &Setup) {
    let global = lasting(fixture, DOMAINS[0].0, Domain::global());
    let private = DOMAINS[1..].iter().map(|(name, built, _)| {
        let builder = built(Domain::builder().engine(setup.engine));
        lasting::<Private>(fixture, name, builder.build())
    });
    let private: Vec<_> = private.collect();
    let domains = DOMAINS.iter().enumerate();
    let readers =
        domains.flat_map(|(at, (.., kinds))| kinds.iter().map(move |&kind| (Some(kind), at)));
    let shared = &UPDATERS[..UPDATERS.len() - 1];
    let updaters = UPDATERS.iter().chain(shared.iter().cycle()).map(|&at| (None, at));
    let all = readers.cycle().take(setup.readers).chain(updaters.take(setup.updaters));
    for (reads, at) in all {
        match at {
            0 => part(fixture, &global, reads, false),
            at => part(fixture, &private[at - 1], reads, at == LONE),
        }
    }
}

fn lasting<K: ThreadTag>(
    fixture: &mut Fixture,
    name: &'static str,
    domain: Domain<K>,
) -> Arc<Arena<K>> {
    let arena = Arc::new(Arena::new(name, domain));
    fixture.domain(&arena);
    arena
}

/// One more thread, which reads in this way or updates. The one that is alone waits for each grace
/// period itself, and has no callbacks that the worker would wait for.
fn part<K: ThreadTag>(
    fixture: &mut Fixture,
    arena: &Arc<Arena<K>>,
    reads: Option<ReaderKind>,
    is_alone: bool,
) {
    let arena = Arc::clone(arena);
    let does = reads.map_or("updater".to_owned(), |kind| format!("reader ({})", kind.name()));
    fixture.part(false, format!("{does} in the {}", arena.name), move |context| {
        let participant = Participant::new(&arena, context);
        match reads {
            Some(ReaderKind::Passing) => participant.pass(),
            Some(kind) => participant.read_often(kind),
            None if is_alone => participant.wait_alone(),
            None => participant.update_often(),
        }
    });
}
