// cargo add quiescence
use quiescence::collections::HashMap;

fn main() {
    let table = HashMap::new();
    table.insert("10.0.0.0/8", "eth0");
    // A reader: references live as long as the section.
    let section = table.read();
    assert_eq!(section.get("10.0.0.0/8"), Some(&"eth0"));
    drop(section);
    table.update("10.0.0.0/8", |_| "eth1");
    table.remove("10.0.0.0/8");
}
