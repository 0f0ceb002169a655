use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

fn main() {
    let hashes = RandomState::new();
    let buckets: Vec<Mutex<Vec<(&str, &str)>>> = (0..1024).map(|_| Mutex::default()).collect();
    let bucket = |key: &str| buckets[hashes.hash_one(key) as usize % 1024].lock().unwrap();
    bucket("10.0.0.0/8").push(("10.0.0.0/8", "eth0"));
    // A reader: the lock of one bucket.
    let found = bucket("10.0.0.0/8").iter().find(|entry| entry.0 == "10.0.0.0/8").copied();
    assert_eq!(found, Some(("10.0.0.0/8", "eth0")));
    bucket("10.0.0.0/8").retain(|entry| entry.0 != "10.0.0.0/8");
}
