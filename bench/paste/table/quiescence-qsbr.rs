// cargo add quiescence
use std::collections::HashMap;

use quiescence::{Domain, Rcu};

fn main() {
    let table = HashMap::from([("10.0.0.0/8", Rcu::new("eth0"))]);
    let mut thread = Domain::global().qsbr();
    for _ in 0..100 {
        assert_eq!(*table["10.0.0.0/8"].load(&thread.read()), "eth0");
        // Every few operations: this thread holds no reference. And `offline` before it blocks.
        thread.quiescent_state();
    }
    table["10.0.0.0/8"].store("eth1");
}
