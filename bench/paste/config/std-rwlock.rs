use std::sync::RwLock;

fn main() {
    let config = RwLock::new(String::from("old"));
    // A reader.
    assert_eq!(*config.read().unwrap(), "old");
    // An updater: the old value is dropped when the lock is free again.
    let old = std::mem::replace(&mut *config.write().unwrap(), String::from("new"));
    drop(old);
    assert_eq!(*config.read().unwrap(), "new");
}
