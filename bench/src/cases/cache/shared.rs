//! What two CPUs do to each other though they share nothing but a line: counters and locks of their
//! own, as neighbours and apart.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Form, Geometry, Load};
use crate::cases::thread_pool::{Presence, ThreadPool};
use crate::suites::rounds::Sample;

/// About what one operation takes where the line is shared, for the number of them.
const ABOUT: Duration = Duration::from_nanos(20);

/// The two of a pair on one line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Near<T>([T; 2]);

/// One with its neighbours kept away: two lines, since some CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// A counter for each thread, which no other one touches.
pub(crate) struct Counters {
    near: Near<AtomicU64>,
    apart: [Apart<AtomicU64>; 2],
    times: u64,
}

impl Counters {
    pub(crate) fn boxed(_: &Geometry, budget: Duration) -> Box<dyn Load> {
        let (near, apart) = Default::default();
        Box::new(Self { near, apart, times: times(budget) })
    }
}

impl Load for Counters {
    fn measure(&mut self, form: Form) -> Sample {
        // Relaxed: the cost is that of the line, not of an order.
        let add = |counter: &AtomicU64| _ = counter.fetch_add(1, Ordering::Relaxed);
        match form {
            Form::Before => together(self.times, |thread| add(&self.near.0[thread])),
            _ => together(self.times, |thread| add(&self.apart[thread].0)),
        }
    }
}

/// A lock for each thread, which no other one takes, with what it protects.
pub(crate) struct Locks {
    near: Near<Mutex<u64>>,
    apart: [Apart<Mutex<u64>>; 2],
    times: u64,
}

impl Locks {
    pub(crate) fn boxed(_: &Geometry, budget: Duration) -> Box<dyn Load> {
        let (near, apart) = Default::default();
        Box::new(Self { near, apart, times: times(budget) })
    }
}

impl Load for Locks {
    fn measure(&mut self, form: Form) -> Sample {
        let add = |lock: &Mutex<u64>| *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        match form {
            Form::Before => together(self.times, |thread| add(&self.near.0[thread])),
            _ => together(self.times, |thread| add(&self.apart[thread].0)),
        }
    }
}

fn times(budget: Duration) -> u64 {
    (budget.as_nanos() / ABOUT.as_nanos()).max(1 << 10) as u64
}

/// The time of one operation, of which each of two threads does so many, each on a CPU of its own
/// if there are two.
fn together(times: u64, operation: impl Fn(usize) + Sync) -> Sample {
    let pool = ThreadPool::new(2);
    let run = |number: usize| {
        pool.settle(number);
        operation(number);
        pool.meet();
        let presence = Presence::new();
        let begin = Instant::now();
        for _ in 0..times {
            operation(number);
        }
        let own = presence.own_time(begin.elapsed());
        (own, presence.share())
    };
    let both = thread::scope(|scope| {
        let run = &run;
        let threads = [0, 1].map(|number| scope.spawn(move || run(number)));
        threads.map(|thread| thread.join().expect("counting does not panic"))
    });
    let elapsed: Duration = both.iter().map(|(own, _)| *own).sum();
    let share = both.iter().fold(1.0_f64, |least, (_, share)| least.min(*share));
    let ns = elapsed.as_nanos() as f64 / (2 * times) as f64;
    Sample { values: vec![ns], readers_share: share }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TINY;
    use super::*;

    #[test]
    fn neighbours_share_a_line_and_the_others_do_not() {
        let line = |place: *const AtomicU64| place as usize / 64;
        let (near, apart): (Near<AtomicU64>, [Apart<AtomicU64>; 2]) = Default::default();
        assert_eq!(line(&raw const near.0[0]), line(&raw const near.0[1]));
        assert!(line(&raw const apart[0].0).abs_diff(line(&raw const apart[1].0)) >= 2);
        let locks: Near<Mutex<u64>> = Near::default();
        let last = &raw const locks.0[1] as usize + size_of::<Mutex<u64>>() - 1;
        assert_eq!(&raw const locks.0[0] as usize / 64, last / 64);
    }

    #[test]
    fn no_increment_is_lost_in_either_form() {
        let mut counters = Counters { near: Near::default(), apart: Default::default(), times: 99 };
        let mut locks = Locks { near: Near::default(), apart: Default::default(), times: 99 };
        for form in [Form::Before, Form::After] {
            assert!(counters.measure(form).values[0] > 0.0 && locks.measure(form).values[0] > 0.0);
        }
        // One to warm up, and as many as were asked for.
        let count = |lock: &Mutex<u64>| *lock.lock().unwrap();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for thread in [0, 1] {
            assert_eq!((of(&counters.near.0[thread]), of(&counters.apart[thread].0)), (100, 100));
            assert_eq!((count(&locks.near.0[thread]), count(&locks.apart[thread].0)), (100, 100));
        }
        assert_eq!(Counters::boxed(&TINY, Duration::ZERO).measure(Form::After).values.len(), 1);
    }
}
