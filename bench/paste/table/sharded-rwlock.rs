use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::RwLock;

fn main() {
    let hashes = RandomState::new();
    // Some eight for each CPU.
    let shards: Vec<RwLock<HashMap<&str, &str>>> = (0..64).map(|_| RwLock::default()).collect();
    let shard = |key: &str| &shards[hashes.hash_one(key) as usize % 64];
    shard("10.0.0.0/8").write().unwrap().insert("10.0.0.0/8", "eth0");
    assert_eq!(shard("10.0.0.0/8").read().unwrap().get("10.0.0.0/8"), Some(&"eth0"));
    shard("10.0.0.0/8").write().unwrap().remove("10.0.0.0/8");
}
