//! Grace periods that only the worker drives, beside callbacks for which it need not come soon.

use crate::common::*;
use quiescence::tuning::Engine;

/// The worker, which knew of the callback, was not told of the grace period: it came when the
/// callback had waited long enough, here never. Under `tick`, polls make no progress themselves.
#[test]
fn a_started_grace_period_does_not_wait_for_what_is_lazy() {
    for engine in [Engine::Tick, Engine::Token, Engine::Poll] {
        let domain = Domain::builder().engine(engine).build();
        tune(&domain, |tuning| tuning.lazy = Duration::MAX);
        domain.call(|| ()).unwrap();
        let _cookie = domain.start_poll();
        until(|| domain.statistics().grace_periods != 0);
    }
}

/// A grace period that a full batch had asked for was in progress, and no thread drove it: polls
/// left it to the worker, which was not told and came when other callbacks had waited long enough.
#[test]
fn a_poll_does_not_wait_for_what_is_lazy() {
    let domain = Domain::builder().engine(Engine::Tick).build();
    tune(&domain, |tuning| tuning.lazy = Duration::MAX);
    // The last one is as large as a batch, and ends a round of additions.
    (0..17).for_each(|n| domain.retire_sized((), if n == 16 { 2 << 20 } else { 8 }).unwrap());
    let cookie = domain.cookie();
    until(|| domain.poll(cookie));
}

/// Who awaits a grace period in a callback polls again and again, since the worker may be waiting
/// for this very thread. Under `tick` no such poll began anything.
#[test]
fn a_callback_that_awaits_a_grace_period_takes_the_place_of_the_worker() {
    for engine in Engine::ALL {
        let domain = Domain::builder().engine(engine).build();
        let (inside, (sender, has_ended)) = (domain.clone(), mpsc::channel());
        let awaits = move || {
            block_on(inside.synchronize_async());
            sender.send(()).unwrap();
        };
        domain.call_hurry(awaits).unwrap();
        has_ended.recv().unwrap();
    }
}
