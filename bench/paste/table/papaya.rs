// cargo add papaya
use papaya::HashMap;

fn main() {
    let table = HashMap::from([("10.0.0.0/8", "eth0")]);
    // A reader: references live as long as the pinned map.
    let pinned = table.pin();
    assert_eq!(pinned.get("10.0.0.0/8"), Some(&"eth0"));
    pinned.insert("10.0.0.0/8", "eth1");
    pinned.remove("10.0.0.0/8");
}
