// cargo add quiescence
use quiescence::cell::Snapshot;

fn main() {
    let limits = Snapshot::new([10, 100]);
    // A reader: a copy, of one write.
    assert_eq!(limits.load(), [10, 100]);
    limits.store([20, 200]);
    assert_eq!(limits.load(), [20, 200]);
}
