// cargo add quiescence
use quiescence::sync::ExactCounter;

static EVENTS: ExactCounter = ExactCounter::new();

fn main() {
    EVENTS.add(1);
    // The sum: the value at one moment.
    assert_eq!(EVENTS.sum(), 1);
}
