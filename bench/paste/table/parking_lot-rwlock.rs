// cargo add parking_lot
use std::collections::HashMap;
use parking_lot::RwLock;

fn main() {
    let table = RwLock::new(HashMap::from([("10.0.0.0/8", "eth0")]));
    // A reader: one value, under the lock.
    assert_eq!(table.read().get("10.0.0.0/8"), Some(&"eth0"));
    // An updater: replaces, inserts, removes.
    table.write().insert("10.0.0.0/8", "eth1");
    assert_eq!(table.write().remove("10.0.0.0/8"), Some("eth1"));
}
