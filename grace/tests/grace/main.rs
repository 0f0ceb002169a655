//! The machine of grace periods and its arithmetic, against models.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

mod ends;
mod limit;
mod machine;
mod segments;
mod sequence;
mod srcu;
mod srcu_orders;

/// Any count of ended grace periods, with those right around the wrap and the sign change as likely
/// as all others.
fn ended() -> impl Strategy<Value = u64> {
    const HALF: u64 = 1 << 62;
    prop_oneof![any::<u64>(), (u64::MAX >> 1) - 5..=u64::MAX >> 1, HALF - 5..=HALF + 5, 0..5u64]
}

/// A case that fails is printed, and not written into the tree.
fn written_nowhere() -> Config {
    Config { failure_persistence: None, ..Config::default() }
}

/// What a model says that fails in some cases, always the same: they are meant to fail.
fn told<S: Strategy>(cases: &S, model: impl Fn(S::Value) -> Result<(), String>) -> String {
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(written_nowhere(), rng);
    let found = runner.run(cases, |case| model(case).map_err(TestCaseError::fail));
    found.expect_err("the fault is found").to_string()
}
