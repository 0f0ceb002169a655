// cargo add slotmap parking_lot
use parking_lot::RwLock;
use slotmap::{DefaultKey, SlotMap};

fn main() {
    let sessions: RwLock<SlotMap<DefaultKey, &str>> = RwLock::default();
    let id = sessions.write().insert("alice");
    assert_eq!(sessions.read().get(id), Some(&"alice"));
    // An id of something that is gone finds nothing, also when its slot is used again.
    sessions.write().remove(id);
    assert_eq!(sessions.read().get(id), None);
}
