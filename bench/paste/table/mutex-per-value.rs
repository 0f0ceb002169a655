use std::collections::HashMap;
use std::sync::Mutex;

fn main() {
    // The map itself never changes, and needs no lock.
    let table = HashMap::from([("10.0.0.0/8", Mutex::new("eth0"))]);
    let value = &table["10.0.0.0/8"];
    assert_eq!(*value.lock().unwrap(), "eth0");
    *value.lock().unwrap() = "eth1";
}
