// cargo add quiescence
use quiescence::sync::SeqLock;

static LIMITS: SeqLock<[u64; 2]> = SeqLock::new([10, 100]);

fn main() {
    // A reader: a copy, of one write.
    assert_eq!(LIMITS.read(), [10, 100]);
    LIMITS.write([20, 200]);
    assert_eq!(LIMITS.read(), [20, 200]);
}
