use std::collections::HashMap;
use std::sync::RwLock;

fn main() {
    let table = RwLock::new(HashMap::from([("10.0.0.0/8", "eth0")]));
    // A reader: one value, under the lock.
    assert_eq!(table.read().unwrap().get("10.0.0.0/8"), Some(&"eth0"));
    // An updater: replaces, inserts, removes.
    table.write().unwrap().insert("10.0.0.0/8", "eth1");
    assert_eq!(table.write().unwrap().remove("10.0.0.0/8"), Some("eth1"));
}
