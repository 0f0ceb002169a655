// cargo add quiescence
use std::collections::HashMap;

use quiescence::{Rcu, Srcu};

fn main() {
    let domain = Srcu::new();
    let table = HashMap::from([("10.0.0.0/8", Rcu::new_in("eth0", domain.domain()))]);
    // A reader, which may block or `.await` in its section.
    let section = domain.read();
    assert_eq!(*table["10.0.0.0/8"].load(&section), "eth0");
    drop(section);
    table["10.0.0.0/8"].store("eth1");
}
