use std::collections::HashMap;
use std::sync::Mutex;

fn main() {
    let table = Mutex::new(HashMap::from([("10.0.0.0/8", "eth0")]));
    // A reader: one value, under the lock.
    assert_eq!(table.lock().unwrap().get("10.0.0.0/8"), Some(&"eth0"));
    // An updater: replaces, inserts, removes.
    table.lock().unwrap().insert("10.0.0.0/8", "eth1");
    assert_eq!(table.lock().unwrap().remove("10.0.0.0/8"), Some("eth1"));
}
