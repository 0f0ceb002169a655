//! A weaker memory, in which loads and stores of different locations are reordered too.
//!
//! The view-based account of C11's release, acquire and relaxed accesses (Kang, Hur, Lahav,
//! Vafeiadis, Dreyer, POPL 2017, without promises). A location is the history of the values it has
//! had; a thread's *view* says how far into each history it has seen. A load may return any value
//! that is not older than the view. A store attaches a view to its value: release attaches all that
//! the thread has seen; an acquire load of that value joins it to the loader's. Sequentially
//! consistent fences join a global view, in both directions.
//!
//! The light fence is one for the compiler only: it does nothing here. The heavy fence is a
//! sequentially consistent fence executed on behalf of each reader where it stands; and since the
//! reader is interrupted and reports, it also orders what the caller did before the fence before
//! what the reader does after it, and the other way round.
//!
//! **Objects.** Accesses to objects are not atomic, so the model asks whether they are *ordered*,
//! as C11 does: a view also counts the objects that the thread knows to be initialised, and the
//! reads of each thread that it knows to be over. These clocks travel with release and acquire,
//! locks and heavy fences, but not through the global view: two fences alone are no happens-before.
//! This is how a section's load that is delayed past a relaxed unlock is found, which is a store
//! overtaking a load.
//!
//! **Out of scope:** load buffering (a load that returns a value whose store depends on that load),
//! and, but for the variables of litmus tests ([`Memory::race`]), a store that takes a place
//! *before* an earlier one of another thread in the order of its location. Every other location is
//! written by one thread at a time, ordered by locks, or by read-modify-writes, so that cannot
//! occur.

use core::ops::Range;
use core::sync::atomic::Ordering;

use super::{LOCATIONS, Layout, Location, Lock, Memory, OBJECTS, THREADS};
use crate::choice::Choice;

/// Places in histories, and then the clocks of objects and reads; a power of two for the hardware.
const SLOTS: usize = (LOCATIONS + OBJECTS + THREADS).next_power_of_two();

fn initialised(object: u8) -> usize {
    LOCATIONS + usize::from(object)
}

fn reads_of(thread: usize) -> usize {
    LOCATIONS + OBJECTS + thread
}

/// How far into each history something has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct View([u8; SLOTS]);

impl View {
    fn join(&mut self, other: &Self) {
        self.join_up_to(other, SLOTS);
    }

    /// Without the clocks.
    fn join_histories(&mut self, other: &Self) {
        self.join_up_to(other, LOCATIONS);
    }

    fn join_up_to(&mut self, other: &Self, slots: usize) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0).take(slots) {
            *mine = (*mine).max(*theirs);
        }
    }

    fn forget(&mut self, floors: &[u8; LOCATIONS]) {
        for (seen, floor) in self.0.iter_mut().zip(floors) {
            *seen = seen.saturating_sub(*floor);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Message {
    value: u64,
    view: View,
}

/// The views of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Views {
    /// What it has seen.
    current: View,
    /// What it has seen once it executes an acquire fence.
    acquired: View,
    /// What it had seen at its last release fence.
    released: View,
}

/// Histories and views.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Weak {
    /// The histories, one after the other, and where each of them ends.
    messages: Vec<Message>,
    ends: [u8; LOCATIONS],
    threads: [Views; THREADS],
    /// The global view of sequentially consistent fences.
    global: View,
    locks: [View; 2],
    /// What the readers that answered the heavy fence in progress had seen.
    answers: View,
    /// For each object, the last read of each thread, on the clock of that thread.
    reads: [[u8; THREADS]; OBJECTS],
    loaders: [u8; LOCATIONS],
}

fn is_acquire(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn is_release(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

impl Weak {
    fn history_at(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        usize::from(start)..usize::from(self.ends[at])
    }

    fn history(&self, at: usize) -> &[Message] {
        &self.messages[self.history_at(at)]
    }

    fn insert(&mut self, at: usize, place: usize, message: Message) {
        self.messages.insert(self.history_at(at).start + place, message);
        self.ends[at..].iter_mut().for_each(|end| *end += 1);
    }

    fn see(&mut self, me: usize, at: usize, place: usize, order: Ordering) -> u64 {
        let message = &self.messages[self.history_at(at)][place];
        let views = &mut self.threads[me];
        views.current.0[at] = place as u8;
        if is_acquire(order) {
            views.current.join(&message.view);
        }
        views.acquired.join(&views.current);
        views.acquired.join(&message.view);
        message.value
    }

    fn write(&mut self, me: usize, at: usize, value: u64, order: Ordering, mut view: View) {
        let place = self.history(at).len() as u8;
        let views = &mut self.threads[me];
        views.current.0[at] = place;
        views.acquired.0[at] = place;
        view.join(if is_release(order) { &views.current } else { &views.released });
        view.0[at] = place;
        self.insert(at, usize::from(place), Message { value, view });
    }

    /// All that anybody has seen.
    fn views(&mut self) -> impl Iterator<Item = &mut View> {
        let threads = self.threads.iter_mut();
        let of_threads = threads.flat_map(|t| [&mut t.current, &mut t.acquired, &mut t.released]);
        let messages = self.messages.iter_mut().map(|message| &mut message.view);
        let others = self.locks.iter_mut().chain([&mut self.global, &mut self.answers]);
        of_threads.chain(messages).chain(others)
    }

    fn learn(&mut self, me: usize, what: &View) {
        let views = &mut self.threads[me];
        views.current.join(what);
        views.acquired.join(what);
    }
}

impl Memory for Weak {
    fn new(layout: &Layout) -> Self {
        let first = |value: &u64| Message { value: *value, view: View::default() };
        Self {
            messages: layout.initial.iter().map(first).collect(),
            ends: core::array::from_fn(|at| at as u8 + 1),
            loaders: layout.loaders,
            ..Self::default()
        }
    }

    fn load(&mut self, me: usize, at: Location, order: Ordering, choice: &mut Choice) -> u64 {
        let at = at.index();
        let oldest = usize::from(self.threads[me].current.0[at]);
        let place = oldest + choice.choose(self.history(at).len() - oldest);
        self.see(me, at, place, order)
    }

    fn store(&mut self, me: usize, at: Location, value: u64, order: Ordering) {
        self.write(me, at.index(), value, order, View::default());
    }

    fn race(&mut self, me: usize, at: Location, value: u64, choice: &mut Choice) {
        let at = at.index();
        let seen = usize::from(self.threads[me].current.0[at]);
        let place = seen + 1 + choice.choose(self.history(at).len() - seen);
        for view in self.views().filter(|view| usize::from(view.0[at]) >= place) {
            view.0[at] += 1; // what was at this place is one further on
        }
        let views = &mut self.threads[me];
        views.current.0[at] = place as u8;
        views.acquired.0[at] = views.acquired.0[at].max(place as u8);
        let mut view = views.released;
        view.0[at] = place as u8;
        self.insert(at, place, Message { value, view });
    }

    fn update(&mut self, me: usize, at: Location, order: Ordering, f: impl Fn(u64) -> u64) -> u64 {
        let at = at.index();
        let last = self.history(at).len() - 1;
        let before = self.see(me, at, last, order);
        // A read-modify-write carries on the release sequence of the value it replaces.
        let carried = self.history(at)[last].view;
        self.write(me, at, f(before), order, carried);
        before
    }

    fn fence(&mut self, me: usize) {
        let views = &mut self.threads[me];
        views.current.join(&views.acquired);
        self.global.join_histories(&views.current);
        views.current.join_histories(&self.global);
        views.acquired = views.current;
        views.released = views.current;
    }

    fn acquire_fence(&mut self, me: usize) {
        let views = &mut self.threads[me];
        views.current.join(&views.acquired);
    }

    fn release_fence(&mut self, me: usize) {
        let views = &mut self.threads[me];
        views.released = views.current;
    }

    fn heavy_begin(&mut self, me: usize) {
        self.fence(me);
        self.answers = View::default();
    }

    fn heavy_arrives(&mut self, me: usize, reader: usize) {
        self.fence(reader);
        self.answers.join(&self.threads[reader].current);
        let asked = self.threads[me].current;
        self.learn(reader, &asked);
        self.threads[reader].released = self.threads[reader].current;
    }

    fn heavy_end(&mut self, me: usize) {
        let answers = core::mem::take(&mut self.answers);
        self.learn(me, &answers);
        self.fence(me);
    }

    fn lock(&mut self, me: usize, lock: Lock) {
        let seen = self.locks[lock as usize];
        self.learn(me, &seen);
    }

    fn unlock(&mut self, me: usize, lock: Lock) {
        self.locks[lock as usize].join(&self.threads[me].current);
    }

    fn newest(&self, at: Location) -> u64 {
        self.history(at.index()).last().map_or(0, |message| message.value)
    }

    fn may_load(&self, me: usize, at: Location, wanted: impl Fn(u64) -> bool) -> bool {
        let oldest = usize::from(self.threads[me].current.0[at.index()]);
        self.history(at.index())[oldest..].iter().any(|message| wanted(message.value))
    }

    fn skip_to(&mut self, me: usize, at: Location, wanted: impl Fn(u64) -> bool) {
        let oldest = usize::from(self.threads[me].current.0[at.index()]);
        let later = &self.history(at.index())[oldest..];
        if let Some(skipped) = later.iter().position(|message| wanted(message.value)) {
            self.see(me, at.index(), oldest + skipped, Ordering::Relaxed);
        }
    }

    fn initialise(&mut self, me: usize, object: u8) {
        let views = &mut self.threads[me];
        views.current.0[initialised(object)] = 1;
        views.acquired.0[initialised(object)] = 1;
    }

    fn read_object(&mut self, me: usize, object: u8) -> bool {
        let views = &mut self.threads[me];
        views.current.0[reads_of(me)] += 1;
        views.acquired.0[reads_of(me)] += 1;
        self.reads[usize::from(object)][me] = views.current.0[reads_of(me)];
        object == 0 || views.current.0[initialised(object)] == 1
    }

    fn racing_reader(&self, me: usize, object: u8) -> Option<usize> {
        let reads = &self.reads[usize::from(object)];
        let known = &self.threads[me].current.0;
        (0..self.threads.len())
            .find(|reader| *reader != me && known[reads_of(*reader)] < reads[*reader])
    }

    fn settle(&mut self, active: u8) {
        let mut floors = [0; LOCATIONS];
        for (at, floor) in floors.iter_mut().enumerate() {
            let loaders = self.loaders[at] & active;
            let seen = (0..self.threads.len())
                .filter(|thread| loaders & (1 << thread) != 0)
                .map(|thread| self.threads[thread].current.0[at]);
            *floor = seen.min().unwrap_or(self.history(at).len() as u8 - 1);
        }
        if floors == [0; LOCATIONS] {
            return;
        }
        for (at, floor) in (0..).zip(floors).filter(|(_, floor)| *floor != 0) {
            let start = self.history_at(at).start;
            self.messages.drain(start..start + usize::from(floor));
            self.ends[at..].iter_mut().for_each(|end| *end -= floor);
        }
        self.views().for_each(|view| view.forget(&floors));
    }
}
