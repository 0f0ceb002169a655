// cargo add quiescence
use quiescence::{Domain, Rcu};

fn main() {
    let config = Rcu::new("eth0");
    let mut thread = Domain::global().qsbr();
    for _ in 0..100 {
        assert_eq!(*config.load(&thread.read()), "eth0");
        // Every few operations: this thread holds no reference. And `offline` before it blocks.
        thread.quiescent_state();
    }
    config.store("eth1");
}
