use std::sync::Mutex;

static EVENTS: Mutex<u64> = Mutex::new(0);

fn main() {
    *EVENTS.lock().unwrap() += 1;
    assert_eq!(*EVENTS.lock().unwrap(), 1);
}
