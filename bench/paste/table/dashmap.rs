// cargo add dashmap
use dashmap::DashMap;

fn main() {
    let table = DashMap::new();
    table.insert("10.0.0.0/8", "eth0");
    // A reader. Do not touch the map again while you hold what `get` returns.
    assert_eq!(*table.get("10.0.0.0/8").unwrap(), "eth0");
    table.insert("10.0.0.0/8", "eth1");
    table.remove("10.0.0.0/8");
}
