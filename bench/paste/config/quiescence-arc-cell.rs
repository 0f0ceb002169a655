// cargo add quiescence
use std::sync::Arc;

use quiescence::ArcCell;

fn main() {
    let config = ArcCell::from_pointee("eth0");
    // A reader.
    assert_eq!(**config.load(), *"eth0");
    config.store(Arc::new("eth1"));
    // A reference to keep.
    assert_eq!(*config.load_full(), "eth1");
}
