use std::sync::Mutex;

fn main() {
    let config = Mutex::new(String::from("old"));
    // A reader.
    assert_eq!(*config.lock().unwrap(), "old");
    // An updater: the old value is dropped when the lock is free again.
    let old = std::mem::replace(&mut *config.lock().unwrap(), String::from("new"));
    drop(old);
    assert_eq!(*config.lock().unwrap(), "new");
}
