//! Readers and updaters of sleepable domains: sections that nest, overlap, last, and end on other
//! threads.
//!
//! What they look at are the blocks with an age of the theme `readers` ([`arena`](crate::arena)).

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use quiescence::{Srcu, SrcuGuard, SrcuOwnedGuard, tag::Sleepable};

use crate::arena::{Arena, Look, Participant};
use crate::context::ThreadContext;
use crate::kinds::{FaultKind, Operation, ReaderKind, Step, Way};
use crate::ledger::Ledger;
use crate::pool::{BlockRef, lock};
use crate::random::Random;
use crate::readers::{self, dawdle};
use crate::{delays, fixture, updaters};

/// Which of the domains that last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    Static,
    Made,
}

/// The parts of the readers, given out in this order and from the start again.
pub(crate) const READERS: [(ReaderKind, Where); 16] = [
    (ReaderKind::Srcu, Where::Static),
    (ReaderKind::SrcuElsewhere, Where::Made),
    (ReaderKind::SrcuOverlapping, Where::Static),
    (ReaderKind::SrcuElsewhere, Where::Made),
    (ReaderKind::SrcuNested, Where::Static),
    (ReaderKind::Srcu, Where::Made),
    (ReaderKind::SrcuElsewhere, Where::Static),
    (ReaderKind::SrcuOverlapping, Where::Made),
    (ReaderKind::SrcuElsewhere, Where::Static),
    (ReaderKind::SrcuNested, Where::Made),
    (ReaderKind::SrcuLong, Where::Static),
    (ReaderKind::Srcu, Where::Made),
    (ReaderKind::Srcu, Where::Static),
    (ReaderKind::SrcuElsewhere, Where::Made),
    (ReaderKind::Srcu, Where::Static),
    (ReaderKind::SrcuLong, Where::Made),
];

/// How long a long section is, and how long is paused between two, at most.
const LONG_MAX_US: u64 = 15_000;
const PAUSE_MAX_US: u64 = 30_000;

/// How long the thread that came late stays in its section, at most.
const LATE_MAX_US: u64 = 8_000;

/// How long a reader pauses now and then.
const REST_MAX_US: u64 = 400;

static STATIC: Srcu = Srcu::named("torture");

/// A domain, however it is held.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Static(&'static Srcu),
    Made(Arc<Srcu>),
}

/// A section that may end anywhere.
#[derive(Debug)]
pub(crate) enum Held {
    Static(SrcuGuard<'static>),
    Made(SrcuOwnedGuard),
}

/// Sections whose readers have left them to others, oldest first.
type Left = Mutex<VecDeque<(Held, Option<Look>)>>;

/// A sleepable domain under torture.
#[derive(Clone, Debug)]
pub(crate) struct Yard {
    place: Place,
    pub(crate) arena: Arc<Arena<Sleepable>>,
    left: Arc<Left>,
}

/// Those that last.
#[derive(Clone, Debug)]
pub(crate) struct Yards {
    fixed: Yard,
    made: Yard,
}

impl Yards {
    pub(crate) fn new() -> Self {
        Self {
            fixed: Yard::new("static sleepable domain", Place::Static(&STATIC)),
            made: Yard::new("sleepable domain made at run time", Place::Made(Arc::default())),
        }
    }

    pub(crate) fn at(&self, place: Where) -> &Yard {
        match place {
            Where::Static => &self.fixed,
            Where::Made => &self.made,
        }
    }

    pub(crate) fn arenas(&self) -> [Arc<Arena<Sleepable>>; 2] {
        [&self.fixed, &self.made].map(|yard| Arc::clone(&yard.arena))
    }
}

impl Yard {
    pub(crate) fn new(name: &'static str, place: Place) -> Self {
        let srcu = place.srcu();
        let mut tuning = srcu.tuning();
        // Sections that last are what this is about: no reports.
        tuning.stall_after = None;
        tuning.stall_after_expedited = None;
        srcu.tune(tuning);
        let arena = Arc::new(Arena::new(name, srcu.domain()));
        Self { place, arena, left: Arc::default() }
    }

    pub(crate) fn srcu(&self) -> &Srcu {
        self.place.srcu()
    }

    pub(crate) fn participant(&self, context: &ThreadContext) -> Participant<Sleepable> {
        Participant {
            arena: Arc::clone(&self.arena),
            ledger: Arc::clone(&context.ledger),
            record: context.record,
        }
    }

    /// Begins a section that may end anywhere.
    pub(crate) fn hold(&self) -> Held {
        match &self.place {
            Place::Static(srcu) => Held::Static(srcu.read()),
            Place::Made(srcu) => Held::Made(srcu.read_owned()),
        }
    }
}

impl Place {
    fn srcu(&self) -> &Srcu {
        match self {
            Self::Static(srcu) => srcu,
            Self::Made(srcu) => srcu,
        }
    }
}

impl Held {
    pub(crate) fn look(
        &self,
        participant: &Participant<Sleepable>,
        kind: ReaderKind,
        random: &mut Random,
    ) -> Option<Look> {
        match self {
            Self::Static(guard) => participant.look(guard, kind, random),
            Self::Made(guard) => participant.look(guard, kind, random),
        }
    }
}

/// Reads until the run is over.
pub(crate) fn read(yard: &Yard, context: &ThreadContext, kind: ReaderKind, random: &mut Random) {
    let participant = &yard.participant(context);
    let mut last = None;
    readers::rounds(participant, || {
        match kind {
            ReaderKind::SrcuNested => nested(yard, participant, random),
            ReaderKind::SrcuOverlapping => {
                last = Some(overlapping(yard, participant, last.take(), random))
            }
            ReaderKind::SrcuElsewhere => elsewhere(yard, participant, random),
            ReaderKind::SrcuLong => long(yard, participant, random),
            _ => section(yard, participant, random),
        }
        if random.one_in(64) {
            thread::sleep(Duration::from_micros(random.below(REST_MAX_US)));
        }
    });
    finish(participant, kind, last);
    loop {
        // The thread that is the last to end finds what is left.
        let left = lock(&yard.left).pop_front();
        let Some((held, look)) = left else { break };
        finish(participant, ReaderKind::SrcuElsewhere, Some((held, look)));
    }
}

/// A section that ends where it began.
pub(crate) fn section(yard: &Yard, participant: &Participant<Sleepable>, random: &mut Random) {
    let guard = yard.srcu().read();
    let Some(look) = participant.look(&guard, ReaderKind::Srcu, random) else { return };
    linger(random);
    participant.look_again(&look, ReaderKind::Srcu);
    drop(guard);
}

/// A section in a section, which end in either order: each is one of its own.
fn nested(yard: &Yard, participant: &Participant<Sleepable>, random: &mut Random) {
    let kind = ReaderKind::SrcuNested;
    let outer = yard.srcu().read();
    let before = participant.look(&outer, kind, random);
    linger(random);
    let inner = yard.srcu().read();
    let within = participant.look(&inner, kind, random);
    linger(random);
    if random.one_in(2) {
        before.iter().for_each(|look| participant.look_again(look, kind));
        drop(outer);
        linger(random);
        within.iter().for_each(|look| participant.look_again(look, kind));
        drop(inner);
    } else {
        within.iter().for_each(|look| participant.look_again(look, kind));
        drop(inner);
        linger(random);
        before.iter().for_each(|look| participant.look_again(look, kind));
        drop(outer);
    }
}

/// The next section begins before the last one ends: the domain is never without a section, and
/// grace periods come to an end all the same.
fn overlapping(
    yard: &Yard,
    participant: &Participant<Sleepable>,
    last: Option<(Held, Option<Look>)>,
    random: &mut Random,
) -> (Held, Option<Look>) {
    let held = yard.hold();
    let look = held.look(participant, ReaderKind::SrcuOverlapping, random);
    linger(random);
    finish(participant, ReaderKind::SrcuOverlapping, last);
    (held, look)
}

/// Leaves a section to others, and ends the one that has been left for longest.
fn elsewhere(yard: &Yard, participant: &Participant<Sleepable>, random: &mut Random) {
    let kind = ReaderKind::SrcuElsewhere;
    let held = yard.hold();
    let look = held.look(participant, kind, random);
    let oldest = {
        let mut left = lock(&yard.left);
        left.push_back((held, look));
        left.pop_front()
    };
    linger(random);
    finish(participant, kind, oldest);
}

fn long(yard: &Yard, participant: &Participant<Sleepable>, random: &mut Random) {
    let guard = yard.srcu().read();
    let look = participant.look(&guard, ReaderKind::SrcuLong, random);
    thread::sleep(Duration::from_micros(random.below(LONG_MAX_US)));
    look.iter().for_each(|look| participant.look_again(look, ReaderKind::SrcuLong));
    drop(guard);
    thread::sleep(Duration::from_micros(random.below(PAUSE_MAX_US)));
}

/// Stays in its section: the thread that came late stays for long, since a reader that stalled on
/// its way in is what grace periods with one look too few miss.
fn linger(random: &mut Random) {
    if delays::is_late() && random.one_in(2) {
        thread::sleep(Duration::from_micros(random.below(LATE_MAX_US)));
    } else {
        dawdle(random);
    }
}

/// Looks a last time and ends the section.
fn finish(
    participant: &Participant<Sleepable>,
    kind: ReaderKind,
    section: Option<(Held, Option<Look>)>,
) {
    if let Some((held, look)) = section {
        look.iter().for_each(|look| participant.look_again(look, kind));
        drop(held);
    }
}

/// Updates until the run is over, each time in a way that is drawn.
pub(crate) fn update(yard: &Yard, context: &ThreadContext, random: &mut Random) {
    let participant = yard.participant(context);
    let ways: Vec<Way> = Way::of_sleepable().filter(|&way| way != Way::TaskAwaited).collect();
    let mut boxes = VecDeque::new();
    while !participant.ledger.is_over() {
        let way = ways[random.below(ways.len() as u64) as usize];
        participant.record().begin(Step::Update(way));
        match way {
            Way::TryRetire => try_retire(yard, &participant, random),
            Way::Awaited => awaited(yard, context, &participant, random),
            Way::CookieAwaited => updaters::waited(&participant, way, random, |_| {
                block_on(vec![yard.srcu().wait_async(yard.srcu().cookie())]);
            }),
            way => updaters::update(&participant, way, &mut boxes, random),
        }
        if random.one_in(4) {
            thread::yield_now();
        }
    }
}

/// Replaces a block inside a section, where only what does not wait is allowed.
fn try_retire(yard: &Yard, participant: &Participant<Sleepable>, random: &mut Random) {
    let Some(new) = updaters::fresh(participant) else { return };
    participant.record().begin(Step::Update(Way::TryRetire));
    let guard = yard.srcu().read();
    let old = updaters::replace(participant, new, Way::TryRetire, random);
    let refused =
        yard.srcu().try_retire(Box::new(BlockRef::new(&participant.arena.pool, old))).err();
    drop(guard);
    let Some(refused) = refused else { return };
    if yard.srcu().retire(refused.into_inner()).is_err() {
        participant.ledger.fault(
            FaultKind::Limit,
            participant.arena.name,
            None,
            Some(Way::TryRetire),
            || "refused where it should have waited".to_owned(),
        );
    }
}

/// Waits for several futures at once, and gives one up now and then.
fn awaited(
    yard: &Yard,
    context: &ThreadContext,
    participant: &Participant<Sleepable>,
    random: &mut Random,
) {
    let given_up = random.one_in(2);
    let futures = 1 + random.below(3);
    updaters::waited(participant, Way::Awaited, random, |_| {
        if given_up {
            let mut future = Box::pin(yard.srcu().synchronize_async());
            let done = future.as_mut().poll(&mut Context::from_waker(&unpark())).is_ready();
            context.ledger.did(Operation::Abandoned, u64::from(!done));
        }
        block_on((0..futures).map(|_| yard.srcu().synchronize_async()).collect());
    });
}

/// Wakes a thread that has parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn unpark() -> Waker {
    Arc::new(Unpark(thread::current())).into()
}

/// The barest executor: this thread, which sleeps until it is woken.
fn block_on(futures: Vec<impl Future<Output = ()>>) {
    let waker = unpark();
    let mut context = Context::from_waker(&waker);
    let mut futures: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    loop {
        futures.retain_mut(|future| future.as_mut().poll(&mut context) == Poll::Pending);
        if futures.is_empty() {
            return;
        }
        thread::park();
    }
}

/// Waits for all callbacks of a domain, and looks for what is lost.
pub(crate) fn close(arena: &Arena<Sleepable>, ledger: &Ledger) {
    fixture::close(arena, ledger, |arena| arena.published(&arena.domain.read()));
    let sections = arena.domain.statistics().readers;
    if sections != 0 {
        ledger.fault(FaultKind::Count, arena.name, None, None, || {
            format!("{sections} sections are counted though all have ended")
        });
    }
}
