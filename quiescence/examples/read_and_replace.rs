//! `Rcu`: a routing table that is read all the time and replaced now and then.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::thread;

use quiescence::Rcu;

fn main() {
    let routes: Rcu<BTreeMap<Ipv4Addr, &'static str>> = Rcu::new(BTreeMap::new());
    let destination = Ipv4Addr::new(10, 0, 0, 1);

    thread::scope(|scope| {
        for reader in 0..2 {
            let routes = &routes;
            scope.spawn(move || {
                // The value and the section that protects it, in one: valid until it goes.
                let table = routes.read();
                println!("reader {reader} sees {} routes", table.len());
            });
        }
        // The update: copy, change, replace. Readers see the old table or the new one, whole.
        routes.update(|old| {
            let mut new = old.clone();
            new.insert(destination, "eth0");
            new
        });
    });

    assert_eq!(routes.read().get(&destination), Some(&"eth0"));
}
