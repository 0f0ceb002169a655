// cargo add parking_lot
use parking_lot::Mutex;

static EVENTS: Mutex<u64> = Mutex::new(0);

fn main() {
    *EVENTS.lock() += 1;
    assert_eq!(*EVENTS.lock(), 1);
}
