// cargo add quiescence
use std::collections::HashMap;

use quiescence::Rcu;

fn main() {
    // The map itself never changes; its values are replaced.
    let table = HashMap::from([("10.0.0.0/8", Rcu::new("eth0"))]);
    let value = &table["10.0.0.0/8"];
    assert_eq!(*value.read(), "eth0");
    value.store("eth1");
    assert_eq!(*value.read(), "eth1");
}
