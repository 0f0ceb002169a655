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
        let (began, ended) = (Instant::now(), || domain.statistics().grace_periods != 0);
        while !ended() && began.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        assert!(ended(), "{engine}: the worker does not come");
    }
}
