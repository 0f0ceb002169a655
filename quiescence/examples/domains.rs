//! `Domain` and `domain!`: readers that hold up their own grace periods only.

use quiescence::{Domain, Rcu};

quiescence::domain! {
    /// Long-running scans read here; no other domain waits for them.
    pub struct Scans;
}

fn main() {
    // Declared: a type of its own, so another domain's guard is refused by the compiler.
    let scans = Domain::of(Scans);
    let index = Rcu::new_in(vec!["a", "b"], scans);
    let scan = scans.read();
    quiescence::synchronize(); // the global domain does not wait for `scan`
    assert_eq!(index.load(&scan).len(), 2);
    drop(scan);

    // Made at run time: another domain's guard is refused by a panic.
    let domain = Domain::new();
    let name = Rcu::new_in("first", domain.clone());
    assert_eq!(*name.load(&domain.read()), "first");
    name.store("second");
    domain.barrier();
    println!("{:?}", domain.statistics());
}
