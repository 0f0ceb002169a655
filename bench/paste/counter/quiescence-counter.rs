// cargo add quiescence
use quiescence::sync::Counter;

static EVENTS: Counter = Counter::new();

fn main() {
    EVENTS.add(1);
    // The sum: may have some of the additions that come during it.
    assert_eq!(EVENTS.sum(), 1);
}
