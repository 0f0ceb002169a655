//! Readers and updaters of sleepable domains: sections that nest, overlap, last, and end on other
//! threads.
//!
//! What they look at are the blocks with an age of the theme `readers` ([`arena`](crate::arena)).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::iter;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use quiescence::{Srcu, tag::Sleepable};
use tokio::runtime::Builder;

use super::{growing, tasks, tuning};
use crate::arena::{Arena, Participant, Visit};
use crate::context::ThreadContext;
use crate::delays;
use crate::fixture::Fixture;
use crate::kinds::ReaderKind::{SrcuElsewhere, SrcuLong, SrcuNested, SrcuOverlapping};
use crate::kinds::{FaultKind, Operation, ReaderKind, Step, Way};
use crate::ledger::Ledger;
use crate::pool::lock;
use crate::readers::dawdle;

/// Threads for each CPU that read.
const READERS_PER_CPU: usize = 8;

/// How the readers read, given out in this order and from the start again, in the one domain and in
/// the other by turns. An odd number: so each kind reads in both.
const READERS: [ReaderKind; 5] =
    [ReaderKind::Srcu, SrcuElsewhere, SrcuOverlapping, SrcuNested, SrcuLong];

/// How long a long section is, and how long is paused between two, at most.
const LONG_MAX_US: u64 = 15_000;
const PAUSE_MAX_US: u64 = 30_000;

/// How long the thread that came late stays in its section, at most.
const LATE_MAX_US: u64 = 8_000;

/// How long a reader pauses now and then.
const REST_MAX_US: u64 = 400;

static STATIC: Srcu = Srcu::named("torture");

/// A domain, however it is held.
#[derive(Clone)]
pub(crate) enum Place {
    Static(&'static Srcu),
    Made(Arc<Srcu>),
}

/// Sections whose readers have left them to others, oldest first.
type Left = Mutex<VecDeque<Visit<'static>>>;

/// A sleepable domain under torture.
#[derive(Clone)]
pub(crate) struct Yard {
    pub(crate) place: Place,
    pub(crate) arena: Arc<Arena<Sleepable>>,
    left: Arc<Left>,
}

/// Two domains that last, the static one first, with threads that read and update there; tasks, and
/// small domains beside them.
pub(crate) fn cast(fixture: &mut Fixture, cpus: usize) {
    let yards = [
        Yard::new("static sleepable domain", Place::Static(&STATIC)),
        Yard::new("sleepable domain made at run time", Place::Made(Arc::default())),
    ];
    for yard in &yards {
        fixture.domain(&yard.arena);
        let updater = format!("updater in the {}", yard.arena.name);
        fixture.parts(true, yard.clone(), &[(2, &*updater, update)], |yard, context| {
            expect_no_sections(&yard.arena, context);
        });
    }
    let readers = READERS.iter().cycle().zip(yards.iter().cycle());
    for (&kind, yard) in readers.take(READERS_PER_CPU * cpus) {
        let own = yard.clone();
        let name = format!("reader in the {}", yard.arena.name);
        fixture.part(true, name, move |context| read(&own, context, kind));
    }
    let (beside, shuffler) = (yards[0].clone(), Arc::clone(&fixture.shuffler));
    let shufflers = Arc::clone(&shuffler);
    fixture.part(true, "tasks in sleepable domains", move |context| {
        tasks::run(&yards, &shufflers, context);
    });
    fixture.part(true, "one who has small sleepable domains", move |context| {
        growing::run(&beside, &shuffler, context);
    });
}

impl Yard {
    pub(crate) fn new(name: &'static str, place: Place) -> Self {
        let srcu = place.srcu();
        let now = srcu.tuning();
        srcu.tune(tuning(now.objects_max, now.bytes_max));
        let arena = Arc::new(Arena::new(name, srcu.domain()));
        Self { place, arena, left: Arc::default() }
    }

    /// Begins a section that may end anywhere.
    pub(crate) fn hold(
        &self,
        participant: &Participant<Sleepable>,
        kind: ReaderKind,
    ) -> Visit<'static> {
        match &self.place {
            Place::Static(srcu) => participant.visit(srcu.read(), kind),
            Place::Made(srcu) => participant.visit(srcu.read_owned(), kind),
        }
    }
}

impl Place {
    pub(crate) fn srcu(&self) -> &Srcu {
        match self {
            Self::Static(srcu) => srcu,
            Self::Made(srcu) => srcu,
        }
    }
}

/// Reads until the run is over.
fn read(yard: &Yard, context: &ThreadContext, kind: ReaderKind) {
    let participant = &Participant::new(&yard.arena, context);
    let mut last = None;
    participant.sections(|| {
        match kind {
            SrcuNested => nested(yard, participant),
            SrcuOverlapping => {
                // The next section begins before the last one ends: the domain is never without a
                // section, and grace periods come to an end all the same.
                let next = yard.hold(participant, kind);
                linger(context);
                last.replace(next).into_iter().for_each(|last| participant.leave(last));
            }
            SrcuElsewhere => elsewhere(yard, participant),
            SrcuLong => long(yard, participant),
            _ => section(yard, participant),
        }
        if context.one_in(64) {
            context.sleep(REST_MAX_US);
        }
    });
    // The thread that is the last to end finds what is left.
    let left = || lock(&yard.left).pop_front();
    last.into_iter().chain(iter::from_fn(left)).for_each(|visit| participant.leave(visit));
}

/// A section that ends where it began.
pub(crate) fn section(yard: &Yard, participant: &Participant<Sleepable>) {
    let guard = yard.place.srcu().read();
    let Some(look) = participant.look(&guard, ReaderKind::Srcu) else { return };
    linger(&participant.context);
    participant.look_again(&look, ReaderKind::Srcu);
    drop(guard);
}

/// A section in a section, which end in either order: each is one of its own.
fn nested(yard: &Yard, participant: &Participant<Sleepable>) {
    let begin = || {
        let visit = participant.visit(yard.place.srcu().read(), SrcuNested);
        linger(&participant.context);
        visit
    };
    let (outer, inner) = (begin(), begin());
    let is_outer_first = participant.context.one_in(2);
    let (first, last) = if is_outer_first { (outer, inner) } else { (inner, outer) };
    participant.leave(first);
    linger(&participant.context);
    participant.leave(last);
}

/// Leaves a section to others, and ends the one that has been left for longest.
fn elsewhere(yard: &Yard, participant: &Participant<Sleepable>) {
    let visit = yard.hold(participant, SrcuElsewhere);
    let oldest = {
        let mut left = lock(&yard.left);
        left.push_back(visit);
        left.pop_front()
    };
    linger(&participant.context);
    oldest.into_iter().for_each(|oldest| participant.leave(oldest));
}

fn long(yard: &Yard, participant: &Participant<Sleepable>) {
    let visit = participant.visit(yard.place.srcu().read(), SrcuLong);
    participant.context.sleep(LONG_MAX_US);
    participant.leave(visit);
    participant.context.sleep(PAUSE_MAX_US);
}

/// Stays in its section: the thread that came late stays for long, since a reader that stalled on
/// its way in is what grace periods with one look too few miss.
fn linger(context: &ThreadContext) {
    if delays::is_late() && context.one_in(2) {
        context.sleep(LATE_MAX_US);
    } else {
        dawdle(context);
    }
}

/// Updates until the run is over, each time in a way that is drawn.
fn update(yard: &Yard, context: &ThreadContext) {
    let participant = Participant::new(&yard.arena, context);
    let ways = Way::all(|way| way.is_of_sleepable() && !way.is_alone());
    participant.update_by(&ways, |way| match way {
        Way::TryRetire => try_retire(yard, &participant),
        Way::Awaited => awaited(yard, &participant),
        Way::CookieAwaited => participant.wait(way, |_| {
            block_on(vec![yard.place.srcu().wait_async(yard.place.srcu().cookie())]);
        }),
        way => participant.update(way),
    });
}

/// Replaces a block inside a section, where only what does not wait is allowed.
fn try_retire(yard: &Yard, participant: &Participant<Sleepable>) {
    let Some(new) = participant.fresh() else { return };
    participant.context.record().begin(Step::Update(Way::TryRetire));
    let guard = yard.place.srcu().read();
    let refused = yard.place.srcu().try_retire(participant.replaced(new, Way::TryRetire)).err();
    drop(guard);
    let Some(refused) = refused else { return };
    if yard.place.srcu().retire(refused.into_inner()).is_err() {
        participant.refused(Way::TryRetire);
    }
}

/// Waits for several futures at once, and gives one up now and then.
fn awaited(yard: &Yard, participant: &Participant<Sleepable>) {
    participant.wait(Way::Awaited, |_| {
        if participant.context.one_in(2) {
            block_on(vec![give_up(yard, &participant.context.ledger)]);
        }
        let futures = 1 + participant.context.below(3);
        block_on((0..futures).map(|_| yard.place.srcu().synchronize_async()).collect());
    });
}

/// A future that is polled once and dropped.
pub(crate) async fn give_up(yard: &Yard, ledger: &Ledger) {
    let mut future = pin!(yard.place.srcu().synchronize_async());
    let done = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await;
    ledger.operations.add(Operation::Abandoned, u64::from(!done));
}

/// Waits for all of them at once, on this thread.
fn block_on(futures: Vec<impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let all = poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    });
    let runtime = Builder::new_current_thread().build().expect("it has no threads to start");
    runtime.block_on(all);
}

pub(crate) fn expect_no_sections(arena: &Arena<Sleepable>, context: &ThreadContext) {
    let sections = arena.domain.statistics().readers;
    context.equal(FaultKind::Count, arena.name, "sections, though all have ended", sections, 0);
}
