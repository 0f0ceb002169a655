use std::sync::RwLock;

static EVENTS: RwLock<u64> = RwLock::new(0);

fn main() {
    *EVENTS.write().unwrap() += 1;
    assert_eq!(*EVENTS.read().unwrap(), 1);
}
