// cargo add quiescence
use quiescence::{Rcu, Srcu};

fn main() {
    let domain = Srcu::new();
    let config = Rcu::new_in("eth0", domain.domain());
    // A reader, which may block or `.await` in its section.
    let section = domain.read();
    assert_eq!(*config.load(&section), "eth0");
    drop(section);
    config.store("eth1");
}
