//! The hash table beside liburcu's own: the same operations, and everything that can be seen of
//! them the same.
//!
//! The program writes down what each call answered and the order of the whole table; it is run with
//! Debian's libraries and with ours, and what it wrote is compared. Needs gcc and Debian's
//! liburcu-dev; skipped without.

use xtask::needs;

use crate::program::{Whose, compile_for, run_surely};

#[test]
fn the_same_operations_have_the_same_answers() {
    needs::or_return!(Liburcu);
    let source = "lfht/operations.c";
    let program = compile_for("memb", source, Whose::Debians, &["-D_LGPL_SOURCE"]);
    for seed in ["1", "2", "3", "4", "5"] {
        let said = |libraries| run_surely(&program, libraries, &[seed, "120"]);
        let (theirs, ours) = (said(Whose::Debians), said(Whose::Ours));
        assert!(theirs.lines().count() > 10_000, "it did what it was to do");
        for (number, (theirs, ours)) in theirs.lines().zip(ours.lines()).enumerate() {
            assert_eq!(ours, theirs, "seed {seed}, line {}: ours against Debian's", number + 1);
        }
        assert_eq!(ours.len(), theirs.len());
    }
}
