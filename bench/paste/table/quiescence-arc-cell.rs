// cargo add quiescence
use std::collections::HashMap;
use std::sync::Arc;

use quiescence::ArcCell;

fn main() {
    let table = HashMap::from([("10.0.0.0/8", ArcCell::from_pointee("eth0"))]);
    // A reader.
    assert_eq!(**table["10.0.0.0/8"].load(), *"eth0");
    table["10.0.0.0/8"].store(Arc::new("eth1"));
    // A reference to keep.
    assert_eq!(*table["10.0.0.0/8"].load_full(), "eth1");
}
