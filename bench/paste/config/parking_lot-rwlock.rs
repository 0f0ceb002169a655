// cargo add parking_lot
use parking_lot::RwLock;

fn main() {
    let config = RwLock::new(String::from("old"));
    // A reader.
    assert_eq!(*config.read(), "old");
    // An updater: the old value is dropped when the lock is free again.
    let old = std::mem::replace(&mut *config.write(), String::from("new"));
    drop(old);
    assert_eq!(*config.read(), "new");
}
