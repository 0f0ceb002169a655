// cargo add slotmap
use std::sync::RwLock;
use slotmap::{DefaultKey, SlotMap};

fn main() {
    let sessions: RwLock<SlotMap<DefaultKey, &str>> = RwLock::default();
    let id = sessions.write().unwrap().insert("alice");
    assert_eq!(sessions.read().unwrap().get(id), Some(&"alice"));
    // An id of something that is gone finds nothing, also when its slot is used again.
    sessions.write().unwrap().remove(id);
    assert_eq!(sessions.read().unwrap().get(id), None);
}
