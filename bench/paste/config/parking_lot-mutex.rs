// cargo add parking_lot
use parking_lot::Mutex;

fn main() {
    let config = Mutex::new(String::from("old"));
    // A reader.
    assert_eq!(*config.lock(), "old");
    // An updater: the old value is dropped when the lock is free again.
    let old = std::mem::replace(&mut *config.lock(), String::from("new"));
    drop(old);
    assert_eq!(*config.lock(), "new");
}
