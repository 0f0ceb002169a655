//! The domains of the theme `readers`, and who reads and updates in which.

use std::sync::Arc;

use grace::{Number, Sequence, Start};
use quiescence::tag::ThreadTag;
use quiescence::tuning::Fences;
use quiescence::{Domain, tag::Private};

use super::arena::{Arena, Participant};
use super::fixture::Fixture;
use super::kinds::{Named, ReaderKind};
use super::report::Setup;

/// Grace periods before the counters of the second domain wrap; the counter has 63 bits.
const BEFORE_WRAP: u32 = 64;
const FIRST_OF_WRAPPING: u64 = (u64::MAX >> 1) - BEFORE_WRAP as u64;

/// Bits in the grace-period numbers of the third domain: they come round after eight, so that its
/// grace periods announce two numbers each.
const FEW_BITS: u32 = 3;

/// Which domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The global one.
    Global,
    /// A private one whose counters soon wrap.
    Wrapping,
    /// A private one whose readers come and go: often none is registered.
    Sparse,
    /// A private one in which one thread alone waits: where a reader does not wake it, no other
    /// waiter takes its place as the driver.
    Lone,
    /// A private one whose readers execute full fences, and whose grace periods no membarrier.
    Fencing,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Reader(ReaderKind),
    /// Starts readers that come and go.
    Passing,
    Updater,
    /// Waits for each grace period itself, and has no callbacks that the worker would wait for.
    Waiter,
}

const READ: Act = Act::Reader(ReaderKind::Read);
const NESTED: Act = Act::Reader(ReaderKind::Nested);
const HANDLE: Act = Act::Reader(ReaderKind::Handle);
const QSBR: Act = Act::Reader(ReaderKind::Qsbr);

/// The parts of the readers by their domains, given out in this order and from the start again.
const READERS: [(Place, &[Act]); 5] = [
    (Place::Global, &[READ, NESTED, HANDLE, QSBR, Act::Passing]),
    (Place::Wrapping, &[READ, NESTED, HANDLE, QSBR, Act::Passing]),
    (Place::Sparse, &[Act::Passing, Act::Passing]),
    (Place::Lone, &[READ, HANDLE]),
    (Place::Fencing, &[READ, NESTED, QSBR, Act::Passing]),
];

/// As above, for the updaters: more than one in a domain, so that they share grace periods. The one
/// that waits alone is the last, and is not given out again.
const UPDATERS: [(Act, Place); 7] = [
    (Act::Updater, Place::Global),
    (Act::Updater, Place::Wrapping),
    (Act::Updater, Place::Global),
    (Act::Updater, Place::Sparse),
    (Act::Updater, Place::Wrapping),
    (Act::Updater, Place::Fencing),
    (Act::Waiter, Place::Lone),
];

/// The readers and the updaters.
pub(crate) fn cast(fixture: &mut Fixture, setup: &Setup) {
    let global = lasting(fixture, "global domain", Domain::global());
    let private = |place| {
        let builder = Domain::builder().engine(setup.engine);
        let (name, builder) = match place {
            Place::Wrapping => {
                let sequence = Sequence::after(FIRST_OF_WRAPPING);
                let number = Number(u32::MAX - BEFORE_WRAP);
                let start = Start { sequence, number, ..Start::ZERO };
                ("private domain whose counters wrap", builder.starting_at(start))
            }
            Place::Sparse => {
                let start = Start { number_bits: FEW_BITS, ..Start::ZERO };
                ("private domain with few readers", builder.starting_at(start))
            }
            Place::Fencing => {
                ("private domain whose readers fence", builder.fences(Fences::Portable))
            }
            _ => ("private domain with one waiter", builder.starting_at(Start::ZERO)),
        };
        lasting::<Private>(fixture, name, builder.build())
    };
    let private = [Place::Wrapping, Place::Sparse, Place::Lone, Place::Fencing].map(private);
    let readers = READERS.iter().flat_map(|(place, acts)| acts.iter().map(|act| (*act, *place)));
    let shared = &UPDATERS[..UPDATERS.len() - 1];
    let updaters = UPDATERS.iter().chain(shared.iter().cycle()).take(setup.updaters).copied();
    for (act, place) in readers.cycle().take(setup.readers).chain(updaters) {
        match place {
            Place::Global => act.given(fixture, &global),
            place => act.given(fixture, &private[place as usize - 1]),
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

impl Act {
    fn name(self) -> String {
        match self {
            Self::Reader(kind) => format!("reader ({})", kind.name()),
            Self::Passing => "starter of short-lived threads".to_owned(),
            Self::Updater => "updater".to_owned(),
            Self::Waiter => "waiter".to_owned(),
        }
    }

    /// One more thread does it.
    fn given<K: ThreadTag>(self, fixture: &mut Fixture, arena: &Arc<Arena<K>>) {
        let arena = Arc::clone(arena);
        fixture.part(false, format!("{} in the {}", self.name(), arena.name), move |context| {
            let participant = Participant::new(&arena, context);
            match self {
                Self::Reader(kind) => participant.read_often(kind),
                Self::Passing => participant.pass(),
                Self::Updater => participant.update_often(),
                Self::Waiter => participant.wait_alone(),
            }
        });
    }
}
